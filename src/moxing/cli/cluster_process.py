"""One process of a cluster on this machine: its start, its output, its end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from moxing.cli.cluster_output import LineCutter, Screen

_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 16


class RoleProcess:
    """A process with the role `name`, whose lines go to the screen and, as they are, to a log file.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as logs, selectors.DefaultSelector() as selector:
      ...   process = RoleProcess('worker 0', 0, [sys.executable, '-c', 'print(1)'], Path(logs), 1, selector, Screen())
      ...   while process.code is None:
      ...     process.look()
      ...   process.close()
      ...   process.log.read_text()
      worker 0 | 1
      '1\\n'
    """

    def __init__(
        self,
        name: str,
        place: int,
        command: Sequence[str],
        logs: Path,
        start: int,
        selector: selectors.BaseSelector,
        screen: Screen,
    ) -> None:
        """Starts the process.

        Args:
          name: such as `worker 0`.
          place: its number among all processes, for the colour.
          command: the program and its arguments.
          logs: the directory of its log file.
          start: 1 for the first start of the job, 2 for its first restart, ...
          selector: tells when there is output: `key.data()` then reads it.
          screen: where the lines go.
        """
        self.name = name
        self.log = logs / f"{name.replace(' ', '-')}.log"
        #: The exit code as a shell gives it, 128 + n for signal n; None while the process runs.
        self.code: int | None = None
        #: The process was told to end: how it ends then is no failure of its own.
        self.told = False
        self._place, self._selector, self._screen = place, selector, screen
        self._file = self.log.open("ab", buffering=0)
        self._open_files: set[int] = set()
        self._cutters = {1: LineCutter(), 2: LineCutter()}
        if start > 1 or self._file.tell():
            self._keep(f"--- start {start} ---\n".encode())
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Ctrl-C of the terminal is for the launcher, which passes it on.
            start_new_session=True,
            preexec_fn=_ends_with_its_parent(),
            # Lines appear when they are printed, and the last ones before a kill -9 are not lost. Advice that is the
            # launcher's to give is left out by a process that knows of it.
            env={"PYTHONUNBUFFERED": "1"} | os.environ | {"MOXING_SUPERVISED": "1"},
        )
        self._pipes = {1: self._popen.stdout, 2: self._popen.stderr}
        for number, pipe in self._pipes.items():
            descriptor = pipe.fileno()  # type: ignore[union-attr]
            os.set_blocking(descriptor, False)
            self._open_files.add(number)
            selector.register(descriptor, selectors.EVENT_READ, self._reader(number))

    @property
    def how_it_ended(self) -> str:
        """For messages: `ended with exit code 3` or `was killed by SIGKILL`."""
        number = self._popen.returncode
        if number is None or number >= 0:
            return f"ended with exit code {number}"
        try:
            return f"was killed by {signal.Signals(-number).name}"
        except ValueError:  # real-time signals have no names
            return f"was killed by signal {-number}"

    def look(self) -> None:
        """Shows what is due on the screen, and notes that the process has ended."""
        if self.code is None and self._popen.poll() is not None:
            number = self._popen.returncode
            for stream in tuple(self._open_files):
                # All that it wrote is in the pipes; a few rounds, for its own children may still be writing.
                for _ in range(32):
                    if not self._read(stream):
                        break
                self._show(stream, self._cutters[stream].rest())
            self.code = number if number >= 0 else 128 - number
            if self.code or self.told:
                self._signal_group(signal.SIGKILL)  # what it has started does not outlive it
        for stream, cutter in self._cutters.items():
            self._show(stream, cutter.due(time.monotonic()))

    def tell(self, number: int) -> None:
        """Passes a signal that asks the process to end, once."""
        if self.code is None and not self.told:
            self.told = True
            self._popen.send_signal(number)

    def kill(self) -> None:
        """Ends the process, and those that it has started, at once."""
        self.told = True
        if self.code is None:
            self._signal_group(signal.SIGKILL)

    def close(self) -> None:
        """Kills the process if it still runs, waits for its end, and closes its files."""
        self.kill()
        # Not even SIGKILL ends a process that waits for a disk or a file server.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout=5)
        for number in tuple(self._open_files):
            self._close(number)
        self._file.close()

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def _reader(self, number: int) -> Callable[[], object]:
        return lambda: self._read(number)

    def _read(self, number: int) -> bool:
        """Reads some of what has come; false: there is nothing."""
        pipe = self._pipes[number]
        if number not in self._open_files or pipe is None:
            return False
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._show(number, self._cutters[number].rest())
            self._close(number)
            return False
        self._keep(data)
        self._show(number, self._cutters[number].feed(data, time.monotonic()))
        return True

    def _show(self, number: int, lines: list[bytes]) -> None:
        self._screen.show(number, self.name, self._place, lines)

    def _keep(self, data: bytes) -> None:
        if self._file.closed:
            return
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            # A full disk is no reason to end a training.
            self._file.close()
            self._screen.say(f"warning: {self.log}: {error.strerror}; the log of {self.name} ends here.")

    def _close(self, number: int) -> None:
        pipe = self._pipes[number]
        self._open_files.discard(number)
        if pipe is not None:
            self._selector.unregister(pipe.fileno())
            pipe.close()


def _ends_with_its_parent() -> Callable[[], None] | None:
    """What a new process does before its program: it asks the kernel for SIGKILL at the end of the launcher."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended before the kernel was asked
            os._exit(1)

    return ask
