"""Python processes that have TensorFlow imported when they start, which takes most of the time of a small script.

For tests that look at what a script does. A test of the start-up itself, of imports or of an environment that
TensorFlow reads when it is imported, starts Python as a user does (`helpers.launcher.moxing`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any, NamedTuple

#: Says nothing about speed: what hangs must end some time.
DEADLINE = 240.0
#: The environment before any test changed it.
_ENVIRONMENT = dict(os.environ)


class Program(NamedTuple):
    """What a process runs.

    Attributes:
      kind: "code", "script" or "moxing" (the words of the `moxing` command).
      what: the code or the path of the script.
      words: the arguments.
    """

    kind: str
    what: str
    words: tuple[str, ...] = ()


class Surroundings(NamedTuple):
    """Where a process runs.

    Attributes:
      directory: the working directory.
      environment: all variables; by default those of this process.
      network: the file of the network namespace to enter.
      session: whether the process leads a session of its own, for `os.killpg`.
    """

    directory: str | Path = "."
    environment: Mapping[str, str] | None = None
    network: str | None = None
    session: bool = False

    def as_order(self) -> dict[str, Any]:
        environment = os.environ if self.environment is None else self.environment
        return {**self._asdict(), "directory": os.path.abspath(self.directory), "environment": dict(environment)}


#: The directory and the environment of this process.
HERE = Surroundings()


class WarmProcess:
    """A process of the warm server, used like `subprocess.Popen` with `text=True`.

    Args:
      program: what it runs.
      surroundings: where it runs.
      stdin: PIPE or None for an empty input.
      stdout: PIPE, a path to append to, or None to drop it.
      stderr: the same, or STDOUT.
    """

    def __init__(
        self,
        program: Program,
        surroundings: Surroundings = HERE,
        stdin: int | None = None,
        stdout: int | Path | None = None,
        stderr: int | Path | None = None,
    ) -> None:
        self.args = [program.kind, program.what, *program.words]
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None
        theirs: list[int] = []
        streams = {"stdin": os.devnull}
        if stdin == PIPE:
            read, write = os.pipe()
            theirs.append(read)
            streams["stdin"], self.stdin = _path_of(read), os.fdopen(write, "w")
        for name, target in (("stdout", stdout), ("stderr", stderr)):
            if target == PIPE:
                read, write = os.pipe()
                theirs.append(write)
                streams[name] = _path_of(write)
                setattr(self, name, os.fdopen(read, "r", errors="replace"))
            else:
                streams[name] = streams["stdout"] if target == STDOUT else str(target or os.devnull)
        try:
            self.pid = _server().ask({**program._asdict(), **surroundings.as_order(), **streams})
        finally:
            # The server has opened them.
            for descriptor in theirs:
                os.close(descriptor)

    def poll(self) -> int | None:
        """The exit code, negative for a signal, or None while the process runs."""
        if self.returncode is None:
            self.returncode = _server().ask({"look": self.pid})
        return self.returncode

    def wait(self, timeout: float = DEADLINE) -> int:
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.005)
        return self.returncode

    def communicate(self, timeout: float = DEADLINE) -> tuple[str | None, str | None]:
        """Closes the input, reads the outputs to their ends and waits."""
        if self.stdin is not None:
            self.stdin.close()
        with ThreadPoolExecutor(2) as pool:
            outputs = [pool.submit(stream.read) if stream else None for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            texts = tuple(output and output.result() for output in outputs)
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        return texts

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def _path_of(descriptor: int) -> str:
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def run(
    program: Program, surroundings: Surroundings = HERE, timeout: float = DEADLINE
) -> subprocess.CompletedProcess[str]:
    """Runs a process to its end, as `subprocess.run(..., capture_output=True, text=True)` does."""
    with WarmProcess(program, surroundings, stdout=PIPE, stderr=PIPE) as process:
        try:
            output, errors = process.communicate(timeout)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class _Server:
    """The process that forks the others."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("warm_server.py"))]
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_ENVIRONMENT
        )
        self._lock = threading.Lock()

    def ask(self, order: dict) -> int | None:
        with self._lock:
            self._popen.stdin.write(json.dumps(order) + "\n")
            self._popen.stdin.flush()
            return json.loads(self._popen.stdout.readline())

    def close(self) -> None:
        self._popen.stdin.close()
        self._popen.wait(30)
        self._popen.stdout.close()


_servers: list[_Server] = []


def _server() -> _Server:
    if not _servers:
        _servers.append(_Server())
    return _servers[0]


def close() -> None:
    """Ends the server and all processes that it started."""
    while _servers:
        _servers.pop().close()
