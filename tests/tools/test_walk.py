"""The walk of a step: how many files a reader opens from `mox.run` to the first applied gradient."""

from __future__ import annotations

import subprocess
import sys


def walk(*arguments: str) -> list[str]:
    """The lines that the tool prints, in a process of its own: a tracer sees what is imported already."""
    command = [sys.executable, "-m", "moxing.tools.walk", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def counts(summary: str) -> tuple[int, int, int]:
    files, functions, returns = (int(part.split()[0]) for part in summary.split(", "))
    return files, functions, returns


def test_the_walk_of_a_step_stays_short():
    *visits, summary = walk("--tensors")
    files, functions, returns = counts(summary)
    assert visits[0].startswith("tensorflow/executor/run.py: run")
    assert any(visit.startswith("tensorflow/parallel/local.py") for visit in visits)
    assert len(visits) == files + returns
    assert functions > files
    # Lower these with the code; a change that raises them adds stations that every reader passes.
    assert files <= 45
    assert returns <= 39
