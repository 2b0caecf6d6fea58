"""The output of all processes in one terminal: whole lines, with a prefix and a color for each process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import BinaryIO, TextIO

from moxing.framework.util.terminal import is_terminal

_LINE_END = re.compile(rb"\r*\n")
_ANY_END = re.compile(rb"(\r*\n|\r)")
_LONGEST_LINE = 1 << 20
_SECONDS_BETWEEN_STATES = 1.0
#: Cyan, yellow, green, magenta, blue and their bright versions; red is for errors.
_COLORS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


class LineSplitter:
    """Splits a stream of bytes into lines.

    A progress bar ends its states with a carriage return: only the latest state is shown, once a second.

    Example:
      >>> splitter = LineSplitter()
      >>> splitter.feed(b'one\\ntw', now=0.0)
      [b'one']
      >>> splitter.feed(b'o\\n10%\\r20%\\r30%\\r', now=5.0), splitter.feed(b'40%\\r50%\\r', now=5.1)
      ([b'two', b'30%'], [])
      >>> splitter.due(now=6.0)
      [b'50%']
    """

    def __init__(self) -> None:
        self._partial = b""
        self._state: bytes | None = None
        self._last_shown = float("-inf")
        self._after_return = False

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """Adds data; returns the lines that are complete now, without line ends.

        Args:
          data: the bytes that were read; not empty.
          now: the time in seconds.
        """
        lines: list[bytes] = []
        end_of_line = _LINE_END.match(data)
        if self._after_return and end_of_line is not None:
            # \r\n was read in two parts: the state was a line.
            data = data[end_of_line.end() :]
            if self._state is not None:
                lines.append(self._state)
            self._state = None
        parts = _ANY_END.split(self._partial + data)
        for text, end in zip(parts[0:-1:2], parts[1::2], strict=True):
            if end != b"\r":
                # On a terminal the line overwrites the state.
                self._state = None
                lines.append(text)
            elif text.strip():
                self._state = text
        self._partial = parts[-1]
        self._after_return = len(parts) > 1 and parts[-2] == b"\r" and not self._partial
        if len(self._partial) >= _LONGEST_LINE:
            lines.append(self._partial)
            self._partial = b""
        return lines + self.due(now)

    def due(self, now: float) -> list[bytes]:
        """Returns the latest state of a progress bar, if a second has passed since the last one."""
        if self._state is None or now - self._last_shown < _SECONDS_BETWEEN_STATES:
            return []
        state, self._state, self._last_shown = self._state, None, now
        return [state]

    def rest(self) -> list[bytes]:
        """Returns what is left at the end of the process: the last state and a line without an end.

        Example:
          >>> splitter = LineSplitter()
          >>> splitter.feed(b'a\\nno end', now=0.0), splitter.rest()
          ([b'a'], [b'no end'])
        """
        lines = [text for text in (self._state, self._partial) if text]
        self._state, self._partial, self._after_return = None, b"", False
        return lines


class Screen:
    """Writes lines of many processes to the standard output and error of this process.

    Example:
      >>> screen = Screen()
      >>> screen.is_gone
      False
    """

    def __init__(self) -> None:
        self._streams: dict[int, TextIO | None] = {1: sys.stdout, 2: sys.stderr}
        self._colored = {number: _has_colors(stream) for number, stream in self._streams.items()}
        self.is_gone = False  # the reader of the standard output has closed it

    def show(self, number: int, name: str, position: int, lines: Sequence[bytes]) -> None:
        """Writes lines of one process.

        Args:
          number: 1 for the standard output, 2 for the standard error.
          name: name of the process, for the prefix.
          position: index of the process, for the color.
          lines: lines without line ends.
        """
        if not lines:
            return
        prefix = f"{name} | "
        if self._colored[number]:
            prefix = f"\033[{_COLORS[position % len(_COLORS)]}m{prefix}\033[0m"
        start = prefix.encode()
        self._write(number, b"".join(start + line + b"\n" for line in lines))

    def say(self, text: str) -> None:
        """Writes a line of `moxing run` itself to the standard error."""
        self._write(2, f"moxing run: {text}\n".encode("utf-8", "replace"))

    def _write(self, number: int, data: bytes) -> None:
        stream = self._streams[number]
        if stream is None:  # the process was started without it
            return
        try:
            if hasattr(stream, "buffer"):
                stream.flush()
                _write_all(stream.buffer, data)
            else:  # in a notebook
                stream.write(data.decode("utf-8", "replace"))
            # Both streams may be one terminal: flush, to keep the order of the lines.
            stream.flush()
        except OSError:
            # `... | head`, or a closed terminal. Redirect, since Python flushes again at exit.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.close(null)
            self.is_gone = self.is_gone or number == 1


def _write_all(buffer: BinaryIO, data: bytes) -> None:
    # With PYTHONUNBUFFERED there is no buffer, and a nearly full pipe takes only a part.
    rest = memoryview(data)
    while rest:
        rest = rest[buffer.write(rest) or 0 :]


def _has_colors(stream: TextIO | None) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)
