"""Runs a command: errors name command-line arguments, exit codes, no output of libraries."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moxing.framework.util.terminal import flush


def translate(message: str, arguments: Mapping[str, str]) -> str:
    """Replaces argument names in a message by their names on the command line, except in quotes.

    Example:
      >>> translate("src_dir='/data/src_dir' is a file: size=3", {'src_dir': 'SRC', 'size=': '--size='})
      "SRC='/data/src_dir' is a file: --size=3"
    """
    if not arguments:
        return message
    names = "|".join(re.escape(name) for name in sorted(arguments, key=len, reverse=True))
    words = re.compile(rf"(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?<![\w/-])(?P<name>{names})(?:(?<==)|\b)")
    return words.sub(lambda match: match["quoted"] or arguments[match["name"]], message)


def runner(
    command: str, run: Callable[[argparse.Namespace], int], names: Mapping[str, str]
) -> Callable[[argparse.Namespace], int]:
    """Returns a function that runs a command without output of TensorFlow; an error is one line and exit code 2.

    Args:
      command: the name of the command, for error messages.
      run: runs the command and returns the exit code.
      names: the names on the command line of the arguments in error messages; see `translate`.

    Example:
      >>> runner('moxing data split', lambda arguments: 0, {})(argparse.Namespace())
      0
    """

    def call(arguments: argparse.Namespace) -> int:
        # The version lines are for training only.
        os.environ.setdefault("MOX_SILENT_MODE", "1")
        import moxing.tensorflow  # noqa: F401  (sets the log levels, which `_plain_log_lines` then changes)

        with _no_native_messages(), _plain_log_lines(command, names):
            return run_reporting(command, run, arguments, names)

    return call


def light_runner(
    command: str, run: Callable[[argparse.Namespace], int], names: Mapping[str, str]
) -> Callable[[argparse.Namespace], int]:
    """Like `runner`, for a command that needs no TensorFlow, whose import takes seconds.

    Example:
      >>> light_runner('moxing file ls', lambda arguments: 0, {})(argparse.Namespace())
      0
    """
    return lambda arguments: run_reporting(command, run, arguments, names)


def run_reporting(
    command: str, run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace, names: Mapping[str, str]
) -> int:
    """Runs a command and returns its exit code. An error is one line on standard error.

    Example:
      >>> run_reporting('moxing file ls', lambda arguments: 0, argparse.Namespace(), {})
      0
    """
    try:
        return run(arguments)
    except ValueError as error:
        problem = translate(str(error), names)
    except BrokenPipeError:
        # The reader of the output has closed the pipe: `... | head`. Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        problem = _describe(error, names)
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        return 130
    line = " ".join(problem.split())
    print(f"{command}: error: {line.encode('utf-8', 'replace').decode()}", file=sys.stderr)
    return 2


def _describe(error: OSError, names: Mapping[str, str]) -> str:
    """Returns the file and the reason; an argument at the start of the message is named before its value."""
    file, text = error.filename or "", error.strerror or str(error)
    argument, separator, rest = text.partition(": ")
    if separator and file and argument in names:
        return f"{names[argument]}={file!r}: {translate(rest, names)}"
    return f"{file}: {translate(text, names)}".removeprefix(": ")


@contextmanager
def _no_native_messages() -> Iterator[None]:
    """Drops what native code writes to file descriptor 2; Python's standard error still works.

    TensorFlow's decoders write a line about every bad image, which the commands report themselves, with the file. Set
    `TF_CPP_MIN_LOG_LEVEL=0` in the environment to see these lines.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    try:
        original = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    python_stderr = sys.stderr
    flush(python_stderr)
    encoding = getattr(python_stderr, "encoding", None)
    with open(os.devnull, "wb") as null, open(original, "w", encoding=encoding, errors="replace") as stream:
        try:
            os.dup2(null.fileno(), 2)
            if _descriptor(python_stderr) == 2:
                sys.stderr = stream
            yield
        finally:
            flush(sys.stderr)
            sys.stderr = python_stderr
            os.dup2(original, 2)


def _descriptor(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (OSError, AttributeError, ValueError):
        return None


class _WarningFormatter(logging.Formatter):
    def __init__(self, command: str, names: Mapping[str, str]) -> None:
        super().__init__(f"{command}: warning: %(message)s")
        self._names = names

    def format(self, record: logging.LogRecord) -> str:
        return translate(super().format(record), self._names)


@contextmanager
def _plain_log_lines(command: str, names: Mapping[str, str]) -> Iterator[None]:
    """Prints warnings of the library as lines of this command, and hides INFO lines."""
    log = logging.getLogger("tensorflow")
    before = log.level, log.propagate, list(log.handlers)
    handler = logging.StreamHandler()
    handler.setFormatter(_WarningFormatter(command, names))
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.level, log.propagate, log.handlers = before
        log.setLevel(before[0])
