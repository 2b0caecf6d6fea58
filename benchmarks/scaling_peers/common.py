"""Shared by the cluster programs: model sizes, command line, clock, byte counter."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

CLASSES = 1000
LEARNING_RATE = 0.01
#: Features of a sample and units of the dense layers: 25.1 million parameters.
DENSE = (1024, 4096, 4096, CLASSES)
#: Image size and depth multiplier of the small network: 0.5 million parameters.
SIDE, MULTIPLIER = 96, 0.25
#: Steps per call, for programs that can run several at once.
TOGETHER = 10


class Task(NamedTuple):
    """The task of a program."""

    model: str
    batch: int
    warm_up: int
    steps: int


def task() -> Task:
    """Parse the first arguments, `dense 4 10 40`. Later arguments are specific to the program."""
    model, *numbers = sys.argv[1:5]
    return Task(model, *map(int, numbers))


def bytes_on_wire() -> int:
    """Return the bytes that the loopback interface has carried; every message counts once."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    raise SystemExit("/proc/net/dev tells of no interface lo")


def report(steps: int, seconds: float, sent: int, parameters: int) -> None:
    """Print the measurements of a worker."""
    print(f"@{steps} {seconds} {sent} {parameters}", flush=True)


def measure(run_steps: Callable[[int], float], wanted: Task, parameters: int) -> None:
    """Warm up, then time the steps.

    Args:
      run_steps: runs that many steps and returns the last loss.
      wanted: the task.
      parameters: number of trained parameters.
    """
    run_steps(wanted.warm_up)
    sent, started = bytes_on_wire(), time.perf_counter()
    loss = run_steps(wanted.steps)
    seconds, sent = time.perf_counter() - started, bytes_on_wire() - sent
    if not math.isfinite(loss):
        raise SystemExit(f"the loss is {loss}")
    report(wanted.steps, seconds, sent, parameters)
