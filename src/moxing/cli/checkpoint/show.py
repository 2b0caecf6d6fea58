"""`moxing checkpoint show`: lists the variables of a checkpoint, or statistics of their values."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from moxing.cli.checkpoint.reading import (
    Checkpoint,
    Kind,
    chunks,
    is_numeric,
    is_slot,
    open_checkpoint,
    select,
)
from moxing.cli.output import megabytes, show, show_table
from moxing.tensorflow.executor.checkpoints.files import POSITION_SUFFIX


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    checkpoint = open_checkpoint(arguments.path, "PATH")
    names = list(checkpoint.variables)
    if arguments.like is not None:
        names = select(names, arguments.like, "--like")
    if arguments.values is not None:
        names = select(names, arguments.values, "--values")
    files = f"{len(checkpoint.files)} file{'s' if len(checkpoint.files) > 1 else ''}"
    show(f"{checkpoint.name}: {checkpoint.version} format, {files}{_global_step(checkpoint)}")
    if arguments.values is not None:
        return _show_values(checkpoint, names)
    _show_variables(checkpoint, names)
    position = _data_position(checkpoint.prefix)
    if position:
        show(f"Data position: {position}")
    return 0


def _global_step(checkpoint: Checkpoint) -> str:
    # Some optimizers of 2018 have it in their scope.
    for name, kind in sorted(checkpoint.variables.items(), key=lambda item: len(item[0])):
        if name.rpartition("/")[2] == "global_step" and kind.shape == () and kind.dtype.is_integer:
            return f", {name} {int(checkpoint.read(name))}"
    return ""


def _show_variables(checkpoint: Checkpoint, names: list[str]) -> None:
    kinds = {name: checkpoint.variables[name] for name in names}
    rows = [["variable", "shape", "type", "numbers"]]
    rows += [[name, str(list(kind.shape)), kind.dtype.name, f"{kind.numbers:,}"] for name, kind in kinds.items()]
    show_table(rows)
    slots = [name for name in names if is_slot(name, checkpoint.variables)]
    others = len(checkpoint.variables) - len(names)
    excluded = f" (of {len(checkpoint.variables):,}; --like excludes {others:,})" if others else ""
    show(f"Total: {len(names):,} variables{excluded}, {_total_size(kinds.values())}")
    if slots:
        show(f"Optimizer: {len(slots):,} variables, {_total_size(kinds[name] for name in slots)}")


def _total_size(kinds: Iterable[Kind]) -> str:
    numeric = [kind for kind in kinds if is_numeric(kind.dtype)]
    size = sum(kind.bytes for kind in numeric)
    short = f" ({megabytes(size)})" if size >= 1e5 else ""
    return f"{sum(kind.numbers for kind in numeric):,} parameters, {size:,} bytes{short}"


def _data_position(prefix: str) -> str:
    """Returns the position in the data, which `mox.run` saves next to a checkpoint."""
    path = prefix + POSITION_SUFFIX
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
        text = f"{int(content['elements']):,} elements read, seed {content['seed']}"
        samples = ", ".join(f"{int(sample):,}" for sample in content.get("samples", ()))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{path} cannot be read ({type(error).__name__}: {error})"
    return text + (f", next sample {samples}" if samples else "")


def _show_values(checkpoint: Checkpoint, names: list[str]) -> int:
    rows = [["variable", "min", "max", "mean", "std", "finite"]]
    bad = []
    for name in names:
        values = checkpoint.read(name)
        with np.errstate(over="ignore", invalid="ignore"):
            row, finite = _statistics(values) if is_numeric(checkpoint.variables[name].dtype) else (["-"] * 4, "-")
        rows.append([name, *row, finite])
        if finite not in ("yes", "-"):
            bad.append(name)
    show_table(rows)
    if not bad:
        return 0
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    print(
        f"moxing checkpoint show: {len(bad)} of {len(names)} variables contain NaN or infinite values: "
        f"{', '.join(bad[:5])}{more}",
        file=sys.stderr,
    )
    return 1


def _statistics(values: np.ndarray) -> tuple[list[str], str]:
    """Returns minimum, maximum, mean and standard deviation of the finite values, and counts of the others."""
    nan, infinite, count, total = 0, 0, 0, 0.0
    least, largest = math.inf, -math.inf
    for part in chunks(values):
        nan += int(np.isnan(part).sum())
        infinite += int(np.isinf(part).sum())
        finite = part[np.isfinite(part)]
        if finite.size and not np.iscomplexobj(finite):
            least, largest = min(least, finite.min()), max(largest, finite.max())
            count, total = count + finite.size, total + float(finite.sum(dtype=np.float64))
    parts = [f"{number:,} {word}" for number, word in ((nan, "NaN"), (infinite, "infinite")) if number]
    verdict = ", ".join(parts) or "yes"
    if not count:
        return ["-"] * 4, verdict
    mean = total / count
    squares = sum(float(np.square(part[np.isfinite(part)] - mean).sum()) for part in chunks(values))
    return [*map(text, (least, largest)), text(mean), text(math.sqrt(squares / count))], verdict


def text(number: Any) -> str:
    """Returns a number as text for a table.

    Example:
      >>> text(1234567), text(0.1234567)
      ('1234567', '0.123457')
    """
    return str(int(number)) if isinstance(number, int | np.integer) else f"{number:.6g}"
