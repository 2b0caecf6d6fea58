"""Runs published programs under `moxing run`, kills them, and reports what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

#: Says nothing about speed: what hangs must end some time.
SECONDS = 900


@dataclass(frozen=True)
class Outcome:
    """What came of one program.

    Attributes:
      program: its file name and what it was to do.
      passed: whether it did.
      seconds: how long it ran.
      note: what was found.
      log: all that it wrote.
    """

    program: str
    passed: bool
    seconds: float
    note: str
    log: str

    def require(self, condition: bool, note: str) -> Outcome:
        """The outcome with one more condition, which is told by `note`."""
        return replace(self, passed=self.passed and condition, note=f"{self.note}; {note}" if self.note else note)


@dataclass
class Runner:
    """Runs the programs of a checkout. Their output goes to numbered files in `logs`."""

    checkout: Path
    logs: Path
    count: int = 0

    def run(self, words: list[str], succeeds: bool = True) -> Outcome:
        """Run a program to its end; it passes if it succeeds, or fails when it should."""
        started = time.monotonic()
        process, log = self._start(words)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        code = process.wait()
        expected = (code == 0) == succeeds
        note = "" if expected else f"exit code {code}, see {log}"
        return Outcome(words[0], expected, time.monotonic() - started, note, log.read_text(errors="replace"))

    def kill(self, words: list[str], when: Callable[[], bool]) -> Outcome:
        """Kill a program with SIGKILL as soon as `when` returns True."""
        started = time.monotonic()
        process, log = self._start(words)
        while process.poll() is None and not when() and time.monotonic() - started < SECONDS:
            time.sleep(0.05)
        killed = process.poll() is None and when()
        process.kill()
        process.wait()
        note = "killed after its first checkpoint" if killed else f"ended before it could be killed, see {log}"
        return Outcome(words[0], killed, time.monotonic() - started, note, log.read_text(errors="replace"))

    def _start(self, words: list[str]) -> tuple[subprocess.Popen[bytes], Path]:
        self.count += 1
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{self.count}_{Path(words[0]).stem}.log"
        command = [sys.executable, "-m", "moxing", "run", *words]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.checkout, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        return process, log


def report(outcomes: list[Outcome]) -> int:
    """Print the table. Returns the exit code: 1 if a program failed."""
    width = max(len(outcome.program) for outcome in outcomes)
    for outcome in outcomes:
        verdict = "ok    " if outcome.passed else "FAILED"
        print(f"{outcome.program:{width}}  {verdict}  {outcome.seconds:6.1f} s  {outcome.note}")
    return 0 if all(outcome.passed for outcome in outcomes) else 1
