"""What the peers share: the sizes, the command line, the clock."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

CLASSES = 1000
SIZES = {"resnet_v1_50": 224, "mobilenet_v2": 224, "inception_v3": 299}
LEARNING_RATE, MOMENTUM = 0.01, 0.9
#: Steps before the clock starts: the first optimises graphs and prepares kernels, the second is like all others.
WARM_UP = 1


def arguments() -> tuple[list[str], dict[str, int]]:
    """Words and numbers of the command line: `resnet_v1_50 train --batch=16 --steps=3 --threads=2`."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
    return words, {name: int(value) for name, value in options.items()}


def report(run_steps: Callable[[int], float], batch: int, steps: int, parameters: int, multiply_adds: int) -> None:
    """Warms up, then times `run_steps(steps)`; prints images a second, trained parameters and multiply-adds.

    `run_steps` returns the last loss, or in inference the sum of the last logits: a net that computes NaN is not the
    net that is measured, and may well be faster or slower.
    """
    run_steps(WARM_UP)
    started = time.perf_counter()
    value = run_steps(steps)
    seconds = time.perf_counter() - started
    if not math.isfinite(value):
        raise SystemExit(f"the network computed {value}")
    print(f"@{batch * steps / seconds} {parameters} {multiply_adds}", flush=True)
