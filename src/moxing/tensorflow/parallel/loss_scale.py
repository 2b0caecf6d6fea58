"""Loss scaling: a factor on the loss keeps half-precision gradients from rounding to zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError

#: Prefix of the names of the variables of this module. They belong to the run, not to the model.
OWN_STATE = "moxing/loss_scale/"

_FIRST_SCALE = 2.0**15
_LARGEST_SCALE = 2.0**24
_GOOD_STEPS_TO_DOUBLE = 2000


class LossScale(Protocol):
    """The interface of a loss scale."""

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        """The loss times the scale; gradients are computed from it."""

    def unscaled(self, gradient: Any) -> Any:
        """A gradient of the scaled loss, divided by the scale."""

    def applied(
        self, gradients: Sequence[Any], apply: Callable[[], tf.Operation], global_step: tf.Variable
    ) -> tf.Operation:
        """An operation that applies the gradients, unless they must be skipped, and advances `global_step`."""


def make_loss_scale() -> LossScale | None:
    """Returns the loss scale of `--loss_scale`, None for 1.

    Example:
      >>> FLAGS.set('loss_scale', 128)
      >>> type(make_loss_scale()).__name__
      'FixedLossScale'
      >>> FLAGS.set('loss_scale', 1)
    """
    value = FLAGS.get("loss_scale")
    if value == "dynamic":
        return DynamicLossScale()
    if value is None or not 0 < value < float("inf"):
        raise FlagError(f"--loss_scale={value}: expected a number above 0, or dynamic; 1 means no scaling.")
    return None if value == 1 else FixedLossScale(value)


class FixedLossScale:
    """A constant factor.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     scale = FixedLossScale(8.0)
      ...     print(session.run([scale.scaled(tf.constant(2.0)), scale.unscaled(tf.constant(16.0))]))
      [np.float32(16.0), np.float32(2.0)]
    """

    def __init__(self, value: float) -> None:
        self._value = value

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        return _scaled_loss(loss, self._value)

    def unscaled(self, gradient: Any) -> Any:
        return _times(gradient, 1 / self._value)

    def applied(
        self, gradients: Sequence[Any], apply: Callable[[], tf.Operation], global_step: tf.Variable
    ) -> tf.Operation:
        del gradients, global_step
        return apply()


class DynamicLossScale:
    """A factor that grows until gradients overflow.

    It doubles after 2,000 steps with finite gradients. A step with a gradient that is not finite updates no variable
    and halves the factor; it still advances `global_step`, since its batch is used up. Checkpoints hold the factor.
    """

    def __init__(self) -> None:
        def state(name: str, dtype: tf.DType, value: float) -> tf.Variable:
            return tf.get_variable(
                OWN_STATE + name, [], dtype, initializer=tf.constant_initializer(value), trainable=False
            )

        with tf.variable_scope(tf.VariableScope(reuse=tf.AUTO_REUSE), auxiliary_name_scope=False):
            self.value = state("value", tf.float32, _FIRST_SCALE)
            self._good_steps = state("good_steps", tf.int64, 0)

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        return _scaled_loss(loss, self.value)

    def unscaled(self, gradient: Any) -> Any:
        return _times(gradient, 1 / self.value)

    def applied(
        self, gradients: Sequence[Any], apply: Callable[[], tf.Operation], global_step: tf.Variable
    ) -> tf.Operation:
        values = [gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient for gradient in gradients]
        finite = tf.reduce_all(tf.stack([tf.reduce_all(tf.math.is_finite(value)) for value in values]))

        def grow() -> tf.Tensor:
            with tf.control_dependencies([apply()]):
                good = self._good_steps + 1
            due = good >= _GOOD_STEPS_TO_DOUBLE
            value = tf.where(due, tf.minimum(self.value * 2, _LARGEST_SCALE), self.value)
            return self._assign(value, tf.where(due, tf.zeros_like(good), good))

        def shrink() -> tf.Tensor:
            with tf.control_dependencies([tf.assign_add(global_step, 1)]):
                return self._assign(tf.maximum(self.value / 2, 1.0), tf.zeros([], tf.int64))

        return tf.group(tf.cond(finite, grow, shrink), name="train_op")

    def _assign(self, value: tf.Tensor, good_steps: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([tf.assign(self.value, value), tf.assign(self._good_steps, good_steps)]):
            return tf.constant(True)


def _scaled_loss(loss: tf.Tensor, factor: Any) -> tf.Tensor:
    # In float32: the scaled loss may be out of the range of half precision.
    return tf.cast(loss, tf.float32) * factor if loss.dtype.size < 4 else loss * tf.cast(factor, loss.dtype)


def _times(gradient: Any, factor: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    if gradient.dtype.size < 4:
        # In float32: in half precision the inverse of a large scale is inexact, or 0.
        return tf.cast(tf.cast(gradient, tf.float32) * factor, gradient.dtype)
    return gradient * tf.cast(factor, gradient.dtype)
