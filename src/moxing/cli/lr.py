"""`moxing lr`: draws the learning rate of a strategy."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from moxing.cli.output import show, show_table

_EXAMPLE = """
examples:
  moxing lr '10:0.01,20:0.001' --samples 50000 --batch 256
  moxing lr '5:0.1->0.4,90:0.4=>0.001' --samples 1281167 --batch 1024 --png lr.png

--batch is the batch of a whole step: batch_size x num_gpus x workers.
"""

#: Names in errors of piecewise_lr, and the command-line arguments that they stand for.
_NAMES = {
    "piecewise_lr(lr_strategy=...)": "STRATEGY",
    "piecewise_lr(num_samples=": "--samples (",
    "piecewise_lr(global_batch_size=": "--batch (",
}
_LINES = 12


def add_commands(commands: Any) -> None:
    """Adds `lr` to the parser of the `moxing` command."""
    parser = commands.add_parser(
        "lr",
        help="draw the learning rate of a strategy",
        description="Draws the learning rate that piecewise_lr makes of a strategy.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("strategy", metavar="STRATEGY", help="such as '10:0.1,20:0.01' or '5:0.1->0.4,90:0.4=>0.001'")
    parser.add_argument("--samples", type=int, required=True, metavar="N", help="samples in an epoch")
    parser.add_argument("--batch", type=int, required=True, metavar="B", help="samples in a step, of all devices")
    parser.add_argument(
        "--epochs", type=float, metavar="E", help="number of epochs to draw (to the end of the strategy)"
    )
    parser.add_argument("--png", metavar="FILE", help="also write the curve as a picture")
    parser.set_defaults(function=_run)


def _run(arguments: argparse.Namespace) -> int:
    # Not with `runner`, which imports TensorFlow.
    try:
        return _draw(arguments)
    except ValueError as error:
        problem = str(error)
        for words, name in _NAMES.items():
            problem = problem.replace(words, name)
    except BrokenPipeError:
        # The reader of the pipe is gone. Python flushes stdout once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        problem = f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    print(f"moxing lr: error: {problem}", file=sys.stderr)
    return 2


def _draw(arguments: argparse.Namespace) -> int:
    import numpy as np

    from moxing.cli.curve import save_png, text_curve
    from moxing.framework.util.lr_strategy import check_counts, parse_stages, rate_at

    stages = parse_stages(arguments.strategy)
    check_counts(arguments.samples, arguments.batch)
    epochs = arguments.epochs
    if epochs is None:
        epochs = stages[-1].end if math.isfinite(stages[-1].end) else 1.0
    elif not 0 < epochs < math.inf:
        raise ValueError(f"--epochs={epochs:g}: expected a positive number.")
    steps = max(math.ceil(epochs * arguments.samples / arguments.batch), 1)

    def values(count: int) -> Sequence[float]:
        # Whole steps, as in training.
        chosen = np.floor(np.linspace(0, steps - 1, count))
        return [float(rate) for rate in rate_at(stages, chosen, arguments.samples, arguments.batch, np)]

    width = min(max(shutil.get_terminal_size().columns - 1, 24), 160)
    braille = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    constant = len({rate for stage in stages for rate in (stage.first, stage.last)}) == 1
    for line in text_curve(values, width, 1 if constant else _LINES, braille):
        show(line)
    span = f"epoch 0 to {epochs:g}: {steps:,} steps of {arguments.batch:,} samples"
    show(span.rjust(width))
    rows = [("epochs", "from step", "learning rate")]
    for stage in stages:
        begin = math.ceil(stage.begin * arguments.samples / arguments.batch)
        arrow = " => " if stage.exponential else " -> "
        rate = f"{stage.first:g}" + (f"{arrow}{stage.last:g}" if stage.last != stage.first else "")
        end = f"{stage.end:g}" if math.isfinite(stage.end) else "..."
        rows.append((f"{stage.begin:g} to {end}", f"{begin:,}", rate))
    show_table(rows, left=(0, 2))
    if arguments.png:
        save_png(arguments.png, values, f"epoch {epochs:g} (step {steps:,})", f"learning rate: {arguments.strategy}")
        show(f"Written: {arguments.png}")
    return 0
