"""The user's optimizers: made, checked, and applied together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.rate_factor import rate_given
from moxing.tensorflow.parallel.gradients import GradientPairs, clipped, flat
from moxing.tensorflow.parallel.loss_scale import LossScale


def made(function: Callable[..., Any]) -> Any:
    """The optimizer that an `optimizer_fn` returns.

    Example:
      >>> made(lambda: 0.1)
      Traceback (most recent call last):
      TypeError: optimizer_fn returned 0.1: expected a tf.train.Optimizer (compute_gradients and apply_gradients).
    """
    optimizer = function()
    methods = ("compute_gradients", "apply_gradients")
    if all(callable(getattr(optimizer, method, None)) for method in methods):
        rate = rate_given(optimizer)
        if isinstance(rate, tf.Tensor) and rate.graph is not tf.get_default_graph():
            raise ValueError(
                f"The learning rate of optimizer_fn, {rate.name}, was made outside of it, in another graph than that "
                "of the run: make it inside optimizer_fn, or give learning_rate=lambda: ..., a function that makes it."
            )
        return optimizer
    raise TypeError(f"optimizer_fn returned {optimizer!r}: expected a tf.train.Optimizer ({' and '.join(methods)}).")


def applied_together(
    optimizers: Sequence[Any], pairs: Sequence[GradientPairs], global_step: tf.Variable | None
) -> tf.Operation:
    """All updates, then `global_step` once, by the last optimizer; None: it stays."""
    *first, last = list(zip(optimizers, pairs, strict=True))
    applied = [optimizer.apply_gradients(group) for optimizer, group in first]
    with tf.control_dependencies(applied):
        applied.append(last[0].apply_gradients(last[1], global_step=global_step))
    return tf.group(*applied, name="train_op")


def clipped_and_applied(
    optimizers: Sequence[Any],
    groups: Sequence[GradientPairs],
    scale: LossScale,
    before: Sequence[Any],
    global_step: tf.Variable,
    counts: bool = True,
    clips: bool = True,
) -> tf.Operation:
    """All updates from the clipped gradients, where the loss scale lets them through.

    Args:
      optimizers: one for every loss.
      groups: for every loss the gradients.
      scale: the loss scale.
      before: operations, and gradients, that come before the updates.
      global_step: the step counter.
      counts: false: it stays.
      clips: false: the gradients have been clipped before.
    """
    pairs = [clipped(group) if clips else group for group in groups]
    counted = global_step if counts else None
    with tf.control_dependencies(before):
        # Unclipped: clipping by value makes an ordinary number of an infinite one.
        return scale.applied(flat(groups), lambda: applied_together(optimizers, pairs, counted), global_step)
