"""One process of a cluster on this machine: its start, its output and its end."""

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
from dataclasses import dataclass
from pathlib import Path

from moxing.cli.cluster.output import LineSplitter, Screen

_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 16


@dataclass(frozen=True)
class ProcessSpec:
    """A process to start.

    Attributes:
      name: for example `worker 0`.
      position: index among all processes, for the color.
      command: the program and its arguments.
      logs: the directory of the log file.
      start: 1 for the first start of the job, 2 for its first restart, and so on.
    """

    name: str
    position: int
    command: Sequence[str]
    logs: Path
    start: int = 1


class RoleProcess:
    """A running process, whose output goes to the screen and, unchanged, to a log file.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as logs, selectors.DefaultSelector() as selector:
      ...   spec = ProcessSpec('worker 0', 0, [sys.executable, '-c', 'print(1)'], Path(logs))
      ...   process = RoleProcess(spec, selector, Screen())
      ...   while process.code is None:
      ...     process.poll()
      ...   process.close()
      ...   process.log.read_text()
      worker 0 | 1
      '1\\n'
    """

    def __init__(self, spec: ProcessSpec, selector: selectors.BaseSelector, screen: Screen) -> None:
        """Starts the process.

        Args:
          spec: the process.
          selector: reports output: `key.data()` then reads it.
          screen: shows the lines.
        """
        self.name = spec.name
        self.log = spec.logs / f"{spec.name.replace(' ', '-')}.log"
        #: The exit code as in a shell, 128 + n for signal n; None while the process runs.
        self.code: int | None = None
        #: The process was asked to end: its exit code is not a failure then.
        self.asked_to_end = False
        self._position, self._selector, self._screen = spec.position, selector, screen
        self._file = self.log.open("ab", buffering=0)
        self._open_files: set[int] = set()
        self._splitters = {1: LineSplitter(), 2: LineSplitter()}
        if spec.start > 1 or self._file.tell():
            self._log(f"--- start {spec.start} ---\n".encode())
        # The role comes from the launcher; an Estimator would read TF_CONFIG of the launcher's own role.
        environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        self._popen = subprocess.Popen(
            spec.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Ctrl-C of the terminal goes to the launcher only, which forwards it.
            start_new_session=True,
            preexec_fn=_end_with_parent(),
            # Unbuffered: lines appear at once, and the last ones before a SIGKILL are not lost. With
            # MOXING_SUPERVISED, a process does not repeat the launcher's advice.
            env={"PYTHONUNBUFFERED": "1"} | environment | {"MOXING_SUPERVISED": "1"},
        )
        self._pipes = {1: self._popen.stdout, 2: self._popen.stderr}
        for number, pipe in self._pipes.items():
            descriptor = pipe.fileno()  # type: ignore[union-attr]
            os.set_blocking(descriptor, False)
            self._open_files.add(number)
            selector.register(descriptor, selectors.EVENT_READ, self._reader(number))

    @property
    def how_it_ended(self) -> str:
        """The end of the process for messages: `ended with exit code 3` or `was killed by SIGKILL`."""
        number = self._popen.returncode
        if number is None or number >= 0:
            return f"ended with exit code {number}"
        try:
            return f"was killed by {signal.Signals(-number).name}"
        except ValueError:  # real-time signals have no names
            return f"was killed by signal {-number}"

    def poll(self) -> None:
        """Shows new output, and sets `code` if the process has ended."""
        if self.code is None and self._popen.poll() is not None:
            number = self._popen.returncode
            for stream in tuple(self._open_files):
                # Empty the pipes, in a limited number of reads: its children may still be writing.
                for _ in range(32):
                    if not self._read(stream):
                        break
                self._show(stream, self._splitters[stream].rest())
            self.code = number if number >= 0 else 128 - number
            if self.code or self.asked_to_end:
                self._signal_group(signal.SIGKILL)  # ends its children too
        for stream, splitter in self._splitters.items():
            self._show(stream, splitter.due(time.monotonic()))

    def ask_to_end(self, number: int) -> None:
        """Sends a signal that asks the process to end, once."""
        if self.code is None and not self.asked_to_end:
            self.asked_to_end = True
            self._popen.send_signal(number)

    def kill(self) -> None:
        """Kills the process and its children."""
        self.asked_to_end = True
        if self.code is None:
            self._signal_group(signal.SIGKILL)

    def close(self) -> None:
        """Kills the process if it is still running, waits for its end, and closes its files."""
        self.kill()
        # SIGKILL does not end a process that waits for a disk or a file server.
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
        """Reads available output; returns False if there is none."""
        pipe = self._pipes[number]
        if number not in self._open_files or pipe is None:
            return False
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._show(number, self._splitters[number].rest())
            self._close(number)
            return False
        self._log(data)
        self._show(number, self._splitters[number].feed(data, time.monotonic()))
        return True

    def _show(self, number: int, lines: list[bytes]) -> None:
        self._screen.show(number, self.name, self._position, lines)

    def _log(self, data: bytes) -> None:
        if self._file.closed:
            return
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            # A full disk must not end the training.
            self._file.close()
            self._screen.say(f"warning: {self.log}: {error.strerror}; the log of {self.name} ends here.")

    def _close(self, number: int) -> None:
        pipe = self._pipes[number]
        self._open_files.discard(number)
        if pipe is not None:
            self._selector.unregister(pipe.fileno())
            pipe.close()


def _end_with_parent() -> Callable[[], None] | None:
    """Returns a function for a new process that asks the kernel to kill it when the launcher ends."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the launcher has ended before this call
            os._exit(1)

    return ask
