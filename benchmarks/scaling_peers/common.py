"""What the peers share: the sizes of the models, the command line, the clock and the counter of bytes."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

CLASSES = 1000
LEARNING_RATE = 0.01
#: Numbers in a sample, and the depths of the dense layers behind it: 25.1 million parameters.
DENSE = (1024, 4096, 4096, CLASSES)
#: Side of the images and factor of the depths of the small network: 0.5 million parameters.
SIDE, MULTIPLIER = 96, 0.25
#: Steps that a peer does before it looks at the clock or asks for the next ones, where it can do several at once.
TOGETHER = 10


class Task(NamedTuple):
    """What a peer is to do."""

    model: str
    batch: int
    warm_up: int
    steps: int


def task() -> Task:
    """From the first words of the command line: `dense 4 10 40`. What follows them is the peer's own."""
    model, *numbers = sys.argv[1:5]
    return Task(model, *map(int, numbers))


def bytes_on_wire() -> int:
    """Bytes that the loopback interface has carried. What one process sends another is in it once."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    raise SystemExit("/proc/net/dev tells of no interface lo")


def report(steps: int, seconds: float, sent: int, parameters: int) -> None:
    """Prints what a worker measured."""
    print(f"@{steps} {seconds} {sent} {parameters}", flush=True)


def measure(run_steps: Callable[[int], float], wanted: Task, parameters: int) -> None:
    """Warms up, then does the steps against the clock.

    Args:
      run_steps: does so many steps, returns the last loss.
      wanted: how many.
      parameters: trained ones of the model.
    """
    run_steps(wanted.warm_up)
    sent, started = bytes_on_wire(), time.perf_counter()
    loss = run_steps(wanted.steps)
    seconds, sent = time.perf_counter() - started, bytes_on_wire() - sent
    if not math.isfinite(loss):
        raise SystemExit(f"the loss is {loss}")
    report(wanted.steps, seconds, sent, parameters)
