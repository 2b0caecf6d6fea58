"""The context of the training step that is being built: what an optimizer must know and cannot see by itself.

Strategies set it (they import optimizers, not the other way round); optimizers and wrappers read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf


@dataclass(frozen=True)
class StepContext:
    """The training step that an optimizer belongs to.

    Attributes:
      workers: number of workers of the job; None: unknown.
      weight: samples of this step divided by the samples of a full batch; None: all steps have the same weight.
      center_variables: elastic averaging only: the center variable, which all workers share, by `ref()` of the
        worker's own copy. None without elastic averaging.
    """

    workers: int | None = None
    weight: tf.Tensor | None = None
    center_variables: Mapping[Any, tf.Variable] | None = None


_current: ContextVar[StepContext] = ContextVar("step_context")


def current_context() -> StepContext:
    """Returns the context of the innermost `step_context`; outside of any, one with only None.

    Example:
      >>> with step_context(workers=3):
      ...     current_context().workers
      3
      >>> print(current_context().workers)
      None
    """
    return _current.get(StepContext())


@contextmanager
def step_context(
    workers: int | None = None,
    weight: tf.Tensor | None = None,
    center_variables: Mapping[Any, tf.Variable] | None = None,
) -> Iterator[StepContext]:
    """Sets fields of the current `StepContext`. A field that is None keeps its value from the enclosing context.

    Args:
      workers: see `StepContext`.
      weight: see `StepContext`.
      center_variables: see `StepContext`.

    Example:
      >>> with step_context(workers=2), step_context(weight=0.5) as context:
      ...     context.workers, context.weight
      (2, 0.5)
    """
    fields: dict[str, Any] = {"workers": workers, "weight": weight, "center_variables": center_variables}
    context = replace(current_context(), **{name: value for name, value in fields.items() if value is not None})
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)
