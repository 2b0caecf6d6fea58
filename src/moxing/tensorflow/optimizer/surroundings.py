"""What a strategy tells the optimizers that it makes and applies, which they cannot see by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.wrapper import OptimizerWrapper


@dataclass(frozen=True)
class Surroundings:
    """What is known of the step that an optimizer belongs to.

    Attributes:
      workers: how many workers the job has; None where nobody said it.
      weight: how much the gradients of this step count: their samples, in whole batches; None: always the same.
      centres: in elastic averaging, by `ref()` of a worker's own variable the one that all workers have in common; None
        elsewhere.
    """

    workers: int | None = None
    weight: tf.Tensor | None = None
    centres: Mapping[Any, tf.Variable] | None = None


_current: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


def surroundings() -> Surroundings:
    """What the innermost `told` says.

    Example:
      >>> with told(workers=3):
      ...     surroundings().workers
      3
      >>> print(surroundings().workers)
      None
    """
    return _current.get() or Surroundings()


@contextmanager
def told(**what: Any) -> Iterator[None]:
    """Inside, optimizers know this too; see `Surroundings`."""
    token = _current.set(replace(surroundings(), **what))
    try:
        yield
    finally:
        _current.reset(token)


def chain(optimizer: Any) -> list[Any]:
    """An optimizer and those that it wraps, from the outside.

    Example:
      >>> [type(each).__name__ for each in chain(tf.train.GradientDescentOptimizer(0.1))]
      ['GradientDescentOptimizer']
    """
    found = [optimizer]
    while isinstance(found[-1], OptimizerWrapper):
        found.append(found[-1].wrapped)
    return found


def weighs(optimizers: Any) -> bool:
    """Whether one of the optimizers, or one inside of it, asks for the weight of a step."""
    return any(getattr(each, "weighs", False) for optimizer in optimizers for each in chain(optimizer))
