"""Creating the user's optimizers, checking them, clipping and applying their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.optimizer.rate_factor import rate_given
from moxing.tensorflow.parallel.gradients import GradientPairs, flatten
from moxing.tensorflow.parallel.loss_scale import LossScale


def make_optimizer(function: Callable[..., Any]) -> Any:
    """Calls an `optimizer_fn` and checks what it returns.

    Example:
      >>> make_optimizer(lambda: 0.1)
      Traceback (most recent call last):
      TypeError: optimizer_fn returned 0.1: expected a tf.train.Optimizer (compute_gradients and apply_gradients).
    """
    optimizer = function()
    methods = ("compute_gradients", "apply_gradients")
    if all(callable(getattr(optimizer, method, None)) for method in methods):
        rate = rate_given(optimizer)
        if isinstance(rate, tf.Tensor) and rate.graph is not tf.get_default_graph():
            raise ValueError(
                f"The learning rate of optimizer_fn, {rate.name}, was created outside of it, in a graph other than "
                "that of the run: create it inside optimizer_fn, or pass a function: learning_rate=lambda: ...."
            )
        return optimizer
    raise TypeError(f"optimizer_fn returned {optimizer!r}: expected a tf.train.Optimizer ({' and '.join(methods)}).")


def clip_gradients(pairs: GradientPairs, factor: float = 1.0) -> GradientPairs:
    """Clips gradients to `--gradient_clip` times a factor, by `--gradient_clip_type`.

    Example:
      >>> FLAGS.set('gradient_clip_type', 'value'); FLAGS.set('gradient_clip', 1.0)
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     print(session.run([gradient for gradient, _ in clip_gradients([(tf.constant([0.5, -3.0]), None)])]))
      [array([ 0.5, -1. ], dtype=float32)]
      >>> FLAGS.set('gradient_clip_type', None); FLAGS.set('gradient_clip', None)
    """
    kind, bound = FLAGS.get("gradient_clip_type"), FLAGS.get("gradient_clip")
    if kind is None and bound is None:
        return pairs
    if kind is None or bound is None or bound <= 0:
        raise FlagError(
            f"--gradient_clip_type={kind} --gradient_clip={bound}: both are needed, the type (norm, global_norm or "
            "value) and a bound above 0."
        )
    bound *= factor
    gradients, variables = zip(*pairs, strict=True)
    if kind == "global_norm":
        shorter, _ = tf.clip_by_global_norm(gradients, bound)
    elif kind == "norm":
        shorter = [tf.clip_by_norm(gradient, bound) for gradient in gradients]
    else:
        shorter = [tf.clip_by_value(gradient, -bound, bound) for gradient in gradients]
    return list(zip(shorter, variables, strict=True))


def apply_all(
    optimizers: Sequence[Any], pairs: Sequence[GradientPairs], global_step: tf.Variable | None
) -> tf.Operation:
    """Applies the gradients of every optimizer; the last one advances `global_step`, unless that is None."""
    *first, last = list(zip(optimizers, pairs, strict=True))
    applied = [optimizer.apply_gradients(group) for optimizer, group in first]
    with tf.control_dependencies(applied):
        applied.append(last[0].apply_gradients(last[1], global_step=global_step))
    return tf.group(*applied, name="train_op")


@dataclass(frozen=True)
class UpdateOptions:
    """Parts of an update that can be switched off.

    Attributes:
      clip: apply `--gradient_clip`. False: the gradients are clipped already.
      advance_global_step: count the step.
    """

    clip: bool = True
    advance_global_step: bool = True


_DEFAULTS = UpdateOptions()


def clip_and_apply(
    optimizers: Sequence[Any],
    groups: Sequence[GradientPairs],
    scale: LossScale | None,
    before: Sequence[Any],
    global_step: tf.Variable,
    options: UpdateOptions = _DEFAULTS,
) -> tf.Operation:
    """Clips the gradients and applies them, unless the loss scale skips the step.

    Args:
      optimizers: one for every loss.
      groups: the gradients of every loss.
      scale: the loss scale; None for no scaling.
      before: operations and gradients that come before the updates.
      global_step: the step counter.
      options: parts of an update that can be switched off.
    """
    pairs = [clip_gradients(group) if options.clip else group for group in groups]
    advanced = global_step if options.advance_global_step else None
    with tf.control_dependencies(before):
        if scale is None:
            return apply_all(optimizers, pairs, advanced)
        # The unclipped gradients: clipping by value turns infinity into a finite number.
        return scale.applied(flatten(groups), lambda: apply_all(optimizers, pairs, advanced), global_step)
