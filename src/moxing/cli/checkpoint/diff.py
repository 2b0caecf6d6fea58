"""`moxing checkpoint diff`: compares two checkpoints, or a checkpoint with a network of the zoo."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.cli.checkpoint.reading import Checkpoint, Kind, chunks, is_numeric, is_slot, open_checkpoint
from moxing.cli.checkpoint.show import text
from moxing.cli.output import show, show_table
from moxing.tf1.graph.variables import saved_name, saved_shape

#: Maximum length of a list without --all: two networks of the zoo differ in hundreds of variables.
_MOST_ROWS = 20


@dataclass(frozen=True)
class _Side:
    """One side of the comparison: a checkpoint, or a network of the zoo."""

    letter: str
    title: str
    variables: Mapping[str, Kind]
    checkpoint: Checkpoint | None

    @property
    def is_network(self) -> bool:
        return self.checkpoint is None


class _Change(NamedTuple):
    """The largest difference within a variable, and the two values there."""

    distance: float
    in_a: str
    in_b: str


@dataclass(frozen=True)
class _Section:
    """A part of the output: a line, and a list below it."""

    title: str
    rows: Sequence[Sequence[str]] = ()
    header: Sequence[str] = ()
    verdict: str = ""  # its part of the verdict; empty if it is not a difference

    def show(self, most: int | None) -> None:
        show(self.title)
        listed = [*([self.header] if self.header else []), *self.rows[:most]]
        if self.rows:
            show_table(listed)
        if most is not None and len(self.rows) > most:
            show(f"  ... and {len(self.rows) - most:,} more (--all shows them)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    tolerance = _tolerance(arguments)
    sides = _side(arguments.a, "A", arguments.values), _side(arguments.b, "B", arguments.values)
    a, b = sides
    for side in sides:
        show(f"{side.letter}: {side.title}, {_number(len(side.variables), 'variable')}")
    shared = [name for name in a.variables if name in b.variables]
    sections = [*_missing(a, b, arguments.all), *_missing(b, a, arguments.all)]
    sections += _pairs("shape", shared, a, b, lambda kind: str(list(kind.shape)))
    sections += _pairs("type", shared, a, b, lambda kind: str(kind.dtype.name))
    if arguments.values and a.checkpoint is not None and b.checkpoint is not None:
        sections.append(_values(shared, a.checkpoint, b.checkpoint, tolerance))
    alike = [name for name in shared if a.variables[name] == b.variables[name]]
    show(f"Same name, shape and type: {_number(len(alike), 'variable')}")
    verdicts = [section.verdict for section in sections if section.verdict]
    show(f"Differences: {', '.join(verdicts)}" if verdicts else "No differences.")
    for section in sections:
        section.show(None if arguments.all else _MOST_ROWS)
    return int(bool(verdicts))


def _number(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def _tolerance(arguments: argparse.Namespace) -> float:
    if arguments.tolerance is None:
        return 0.0
    if not arguments.values:
        raise ValueError(f"--tolerance={arguments.tolerance:g} needs --values.")
    if not 0 <= arguments.tolerance < math.inf:
        raise ValueError(f"--tolerance={arguments.tolerance:g}: expected a number of at least 0.")
    return float(arguments.tolerance)


def _side(path: str, letter: str, values: bool) -> _Side:
    if not path.startswith("zoo:"):
        checkpoint = open_checkpoint(path, letter)
        return _Side(letter, f"{checkpoint.name} ({checkpoint.version} format)", checkpoint.variables, checkpoint)
    if values:
        raise ValueError(f"--values: {letter}={path!r} is a network, which has no values. Pass two checkpoints.")
    name, _, number = path.removeprefix("zoo:").partition(":")
    if ":" in path.removeprefix("zoo:") and not (number.isdecimal() and int(number) > 0):
        raise ValueError(f"{letter}={path!r}: expected a number of classes after the name, such as zoo:{name}:10.")
    try:
        num_classes = int(number) if number else _published_classes(name)
        variables = _zoo_variables(name, num_classes)
    except ValueError as error:
        # Remove the name of the function, which the user did not call, and the advice for scripts.
        text = re.sub(r"^get_model_[a-z]+[(][^)]*[)]: ", "", str(error)).partition(" Register a network")[0]
        raise ValueError(f"{letter}={path!r}: {text}") from None
    return _Side(letter, f"network {name} of the zoo with {_number(num_classes, 'class', 'classes')}", variables, None)


def _published_classes(name: str) -> int:
    from moxing.tensorflow.nets.parts.summary import default_classes
    from moxing.tensorflow.network_registry import network, network_name

    return default_classes(network(network_name("get_model_meta", name)))


def _zoo_variables(name: str, num_classes: int) -> dict[str, Kind]:
    """Returns the variables of a network of the zoo, built for inference."""
    from moxing.tensorflow.nets import get_model_fn, get_model_meta
    from moxing.tensorflow.network_registry import network

    size = get_model_meta(name).default_image_size
    channels = network(name.lower()).channels
    with tf.Graph().as_default():
        get_model_fn(name, "PREDICT", num_classes)(tf.placeholder(tf.float32, [1, size, size, channels]))
        found = {
            saved_name(variable): Kind(tuple(saved_shape(variable)), variable.dtype.base_dtype)
            for variable in tf.global_variables()
        }
    return dict(sorted(found.items()))


def _missing(one: _Side, other: _Side, everything: bool) -> Iterator[_Section]:
    """Yields the variables that only one side has."""
    names = [name for name in one.variables if name not in other.variables]
    slots = [] if everything else [name for name in names if is_slot(name, one.variables)]
    steps = [name for name in names if name == "global_step" and other.is_network and not everything]
    listed = [name for name in names if name not in {*slots, *steps}]
    if listed:
        kinds = [one.variables[name] for name in listed]
        rows = [(name, str(list(kind.shape)), kind.dtype.name) for name, kind in zip(listed, kinds, strict=True)]
        title = f"Only in {one.letter}: {_number(len(listed), 'variable')}"
        yield _Section(title, rows, verdict=f"{len(listed):,} only in {one.letter}")
    number = _number(len(slots), "optimizer slot")
    unlisted = [number] * bool(slots) + ["global_step"] * bool(steps)
    if unlisted:
        why = ", which a network never has" if other.is_network else ""
        title = f"Only in {one.letter}{' as well' if listed else ''}: {' and '.join(unlisted)}{why} (--all lists them)"
        verdict = f"{number} only in {one.letter}" if slots and not other.is_network else ""
        yield _Section(title, verdict=verdict)


def _pairs(what: str, names: Sequence[str], a: _Side, b: _Side, value: Callable[[Kind], str]) -> Iterator[_Section]:
    rows = [(name, value(a.variables[name]), value(b.variables[name])) for name in names]
    rows = [row for row in rows if row[1] != row[2]]
    if rows:
        title = f"Different {what}s: {_number(len(rows), 'variable')}"
        yield _Section(title, rows, ("variable", "A", "B"), f"{len(rows):,} in {what}")


def _values(names: Sequence[str], a: Checkpoint, b: Checkpoint, tolerance: float) -> _Section:
    changes: dict[str, _Change] = {}
    compared = 0
    for name in names:
        kinds = a.variables[name], b.variables[name]
        if kinds[0].shape == kinds[1].shape and is_numeric(kinds[0].dtype) == is_numeric(kinds[1].dtype):
            compared += 1
            change = _largest_change(a.read(name), b.read(name), is_numeric(kinds[0].dtype))
            if change.distance > tolerance:
                changes[name] = change
    limit = f"by more than {tolerance:g}" if tolerance else "at all"
    ordered = sorted(changes.items(), key=lambda item: (-item[1].distance, item[0]))
    return _Section(
        title=f"Values that differ {limit}: {len(changes):,} of {_number(compared, 'variable')}",
        rows=[(name, f"{change.distance:.6g}", change.in_a, change.in_b) for name, change in ordered],
        header=("variable", "largest difference", "in A", "in B"),
        verdict=f"{len(changes):,} in values" if changes else "",
    )


def _largest_change(a: np.ndarray, b: np.ndarray, numeric: bool) -> _Change:
    """Returns the largest difference of two arrays of one shape. NaN equals NaN; NaN minus a number is infinite."""
    if not numeric:
        return _Change(0.0 if a.tolist() == b.tolist() else math.inf, "text", "other text")
    most = _Change(0.0, "", "")
    for left, right in zip(chunks(a), chunks(b), strict=True):
        distance = _distances(left, right)
        index = int(np.argmax(distance))
        if distance[index] > most.distance:
            most = _Change(float(distance[index]), text(left[index]), text(right[index]))
    return most


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == b.dtype and a.dtype.kind in "iu":
        # 64-bit integers do not fit into a float64; as unsigned integers their difference cannot overflow.
        return np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(np.subtract(a, b, dtype=np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(distance), math.inf, distance))
