"""Supervises a cluster on this machine: starts its processes, restarts the job after a failure, stops all on a signal.

One thread does everything, and only that thread starts processes: the kernel ties the end of a child to the thread that
has started it. This module does not import TensorFlow.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from moxing.cli.cluster.output import Screen
from moxing.cli.cluster.process import ProcessSpec, RoleProcess

_USAGE_ERROR = 2
_OUTPUT_IS_GONE = 141  # the exit code of a shell for SIGPIPE
_POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Timeouts:
    """Seconds that the launcher waits before it sends the next stronger signal.

    Attributes:
      stop: for the workers to save a checkpoint after Ctrl-C or SIGTERM.
      failure: for the other processes to end after one has failed, and for the ps after the workers have ended.
      farewell: for the ps to end by themselves after all workers have succeeded.
      notice: for the others to notice a dead process by themselves. Then their errors name it; if they were stopped at
        once, some would name another process that the launcher has stopped.
    """

    stop: float = 30.0
    failure: float = 10.0
    farewell: float = 20.0
    notice: float = 5.0


def free_ports(count: int) -> list[int]:
    """Returns different ports that are free on every interface of this machine.

    Example:
      >>> len(set(free_ports(3)))
      3
    """
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            # On every interface, as TensorFlow's servers listen.
            one.bind(("", 0))
        return [int(one.getsockname()[1]) for one in sockets]


class Supervisor:
    """Runs a job of several processes to its end.

    Example:
      >>> import sys, tempfile
      >>> with tempfile.TemporaryDirectory() as logs:
      ...   Supervisor(lambda: {'worker 0': [sys.executable, '-c', 'raise SystemExit(3)']}, Path(logs), 0).run()
      3
    """

    def __init__(
        self,
        commands: Callable[[], Mapping[str, Sequence[str]]],
        logs: Path,
        max_restarts: int = 3,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Does not start the processes yet.

        Args:
          commands: called for every start of the job; returns the command line of each process by name. Processes whose
            name begins with `worker` do the work; the others serve them. One called `evaluator` ends by itself, which
            may take longer than the work.
          logs: the directory of the log files.
          max_restarts: how often the whole job is restarted after a process has failed.
          timeouts: how long it waits.
        """
        self._commands, self._logs, self._max_restarts = commands, logs, max_restarts
        self._timeouts = timeouts or Timeouts()
        self._screen = Screen()
        self._selector = selectors.DefaultSelector()
        self._processes: list[RoleProcess] = []
        self._stop_signal: int | None = None
        self._at_once = False

    def run(self) -> int:
        """Runs the job and returns its exit code: that of the process that failed, or 0."""
        with self._selector, self._signals():
            try:
                return self._run()
            finally:
                self._close()

    def _run(self) -> int:
        restarts = 0
        while True:
            self._start(restarts + 1)
            failed = self._watch()
            if failed is None:
                return self._stop() if self._is_stopped else self._ended_well(restarts)
            code = failed.code or 0
            again = self._may_restart(failed, restarts)
            if code != _USAGE_ERROR:
                self._wait(lambda: self._is_stopped or not self._still_running(), self._timeouts.notice)
            self._end(self._processes, signal.SIGTERM, self._timeouts.failure)
            if not again or self._is_stopped:
                return code
            self._close()
            restarts += 1

    def _start(self, number: int) -> None:
        for name, command in self._commands().items():
            self._processes.append(
                RoleProcess(
                    ProcessSpec(name, len(self._processes), command, self._logs, number), self._selector, self._screen
                )
            )

    def _watch(self) -> RoleProcess | None:
        """Waits for the end of the job; returns the process that failed, or None after success or a stop signal."""
        awaited = [*self._workers(), *self._evaluators()]
        self._wait(lambda: self._is_stopped or bool(self._failed()) or not _running(awaited))
        if not self._is_stopped and not self._failed():
            self._wait(
                lambda: self._is_stopped or bool(self._failed()) or not self._still_running(), self._timeouts.farewell
            )
        if self._is_stopped:
            return None
        failed = self._failed()
        if not failed:
            self._end(self._processes, signal.SIGTERM, self._timeouts.failure)
            return None
        # If several have failed: a signal is more likely the cause, and an exit code its consequence.
        return max(failed, key=lambda process: process.code or 0)

    def _ended_well(self, restarts: int) -> int:
        number = len(self._processes)
        processes = "the process" if number == 1 else f"all {number} processes"
        restarted = "without a restart" if not restarts else f"after {restarts} restart{'s' * (restarts > 1)}"
        self._screen.say(f"{processes} ended well, {restarted}; logs: {self._logs}{os.sep}")
        return 0

    def _may_restart(self, failed: RoleProcess, restarts: int) -> bool:
        """Whether to restart the job; prints the failure and the decision."""
        failure = f"{failed.name} {failed.how_it_ended}"
        if failed not in self._evaluators() and all(worker.code == 0 for worker in self._workers()):
            self._screen.say(f"{failure}, after all workers had ended well; its log is {failed.log}")
        elif failed.code == _USAGE_ERROR:
            self._screen.say(f"{failure}, a wrong command line: the job is not restarted; its log is {failed.log}")
        elif restarts == self._max_restarts:
            self._screen.say(f"{failure}; no restart is left of --max_restarts={restarts}; its log is {failed.log}")
        else:
            self._screen.say(f"{failure}; restart {restarts + 1} of {self._max_restarts} of the whole job")
            return True
        return False

    def _stop(self) -> int:
        """Stops everything after a signal: first the workers, which save what the ps hold. Returns the exit code."""
        number = self._stop_signal or signal.SIGTERM
        name = signal.Signals(number).name
        if not self._screen.is_gone:
            seconds = f"{self._timeouts.stop:g} s"
            self._screen.say(f"{name}: the workers have {seconds} to save and end; a second Ctrl-C kills them at once")
        self._end(self._workers(), number, self._timeouts.stop)
        self._end(self._processes, number, self._timeouts.failure)
        if self._screen.is_gone:
            return _OUTPUT_IS_GONE
        # The exit code of a ps that was asked to end does not count.
        relevant = [process for process in self._processes if not process.asked_to_end or process in self._workers()]
        # The code of the signal itself is expected; 137, of a worker that could not save, takes precedence.
        codes = [128 + signal.SIGKILL if process.code is None else process.code for process in relevant]
        return max(codes, key=lambda code: (code not in (0, 128 + number), code))

    def _end(self, processes: Sequence[RoleProcess], number: int, seconds: float) -> None:
        for process in processes:
            process.ask_to_end(number)
        self._wait(lambda: self._at_once or not self._still_running(processes), seconds)
        for process in self._still_running(processes):
            if not self._at_once:
                self._screen.say(f"{process.name} did not end within {seconds:g} s and is killed")
            process.kill()
        # SIGKILL does not end a process that waits for a disk or a file server: limit the wait.
        self._wait(lambda: not self._still_running(processes), 10.0)

    def _wait(self, done: Callable[[], bool], seconds: float = math.inf) -> None:
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            for key, _ in self._selector.select(_POLL_SECONDS):
                key.data()
            for process in self._processes:
                process.poll()
            if self._screen.is_gone and not self._is_stopped:
                self._stop_signal = signal.SIGTERM

    def _workers(self) -> list[RoleProcess]:
        return [process for process in self._processes if process.name.startswith("worker")]

    def _evaluators(self) -> list[RoleProcess]:
        return [process for process in self._processes if process.name.startswith("evaluator")]

    def _still_running(self, processes: Sequence[RoleProcess] | None = None) -> list[RoleProcess]:
        return _running(self._processes if processes is None else processes)

    def _failed(self) -> list[RoleProcess]:
        return [process for process in self._processes if process.code and not process.asked_to_end]

    @property
    def _is_stopped(self) -> bool:
        return self._stop_signal is not None

    def _close(self) -> None:
        for process in self._processes:
            process.close()
        self._processes = []

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """In this context Ctrl-C and SIGTERM stop the job, and signals interrupt a wait."""
        reading, writing = os.pipe()
        for descriptor in (reading, writing):
            os.set_blocking(descriptor, False)
        self._selector.register(reading, selectors.EVENT_READ, lambda: os.read(reading, 4096))
        before = {signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda number, frame: None)}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # An ignored signal stays ignored: nohup, or a background job of a shell.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, self._on_signal)
        wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reading)
            os.close(writing)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Forward it here: the launcher itself may be blocked by a terminal that takes no output.
        if self._stop_signal is None:
            # Send SIGTERM for a closed terminal: few programs save on SIGHUP.
            self._stop_signal = signal.SIGTERM if number == signal.SIGHUP else number
            for process in self._workers():
                process.ask_to_end(self._stop_signal)
        elif number == signal.SIGINT:
            self._at_once = True
            for process in self._processes:
                process.kill()


def _running(processes: Sequence[RoleProcess]) -> list[RoleProcess]:
    return [process for process in processes if process.code is None]
