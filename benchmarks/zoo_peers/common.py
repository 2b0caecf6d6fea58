"""Shared by the zoo programs: sizes, command line, clock."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

CLASSES = 1000
SIZES = {"resnet_v1_50": 224, "mobilenet_v2": 224, "inception_v3": 299}
LEARNING_RATE, MOMENTUM = 0.01, 0.9
#: Warm-up steps: the first optimizes graphs and prepares kernels, the second is like all later ones.
WARM_UP = 1


def arguments() -> tuple[list[str], dict[str, int]]:
    """Parse the command line: `resnet_v1_50 train --batch=16 --steps=3 --threads=2`."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
    return words, {name: int(value) for name, value in options.items()}


def report(run_steps: Callable[[int], float], batch: int, steps: int, parameters: int, multiply_adds: int) -> None:
    """Warm up, then time `run_steps(steps)`; print images per second, trained parameters and multiply-adds.

    `run_steps` returns the last loss, or in inference the sum of the last logits. It must be finite: computing with
    NaN can be faster or slower.
    """
    run_steps(WARM_UP)
    started = time.perf_counter()
    value = run_steps(steps)
    seconds = time.perf_counter() - started
    if not math.isfinite(value):
        raise SystemExit(f"the network computed {value}")
    print(f"@{batch * steps / seconds} {parameters} {multiply_adds}", flush=True)
