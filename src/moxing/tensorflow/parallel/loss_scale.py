"""Loss scaling: half-precision gradients that would round to zero are kept by a factor on the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError

#: Begin of the names of the variables that are the run's own, not the model's.
OWN_STATE = "moxing/loss_scale/"

_FIRST_SCALE = 2.0**15
_LARGEST_SCALE = 2.0**24
_GOOD_STEPS_TO_DOUBLE = 2000


class LossScale(Protocol):
    """What training needs of a loss scale."""

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        """The loss whose gradients are computed."""

    def unscaled(self, gradient: Any) -> Any:
        """A gradient of the loss itself, from one of the scaled loss."""

    def applied(
        self, gradients: Sequence[Any], apply: Callable[[], tf.Operation], global_step: tf.Variable
    ) -> tf.Operation:
        """An operation that applies the gradients where that makes sense, and advances `global_step`."""


def loss_scale() -> LossScale:
    """The loss scale that `--loss_scale` asks for.

    Example:
      >>> with tf.Graph().as_default():
      ...     type(loss_scale()).__name__
      'FixedLossScale'
    """
    value = FLAGS.get("loss_scale")
    if value == "dynamic":
        return DynamicLossScale()
    if value is None or not 0 < value < float("inf"):
        raise FlagError(f"--loss_scale={value}: expected a number above 0, or dynamic; 1 is off.")
    return FixedLossScale(value)


class FixedLossScale:
    """A factor that stays; 1 is none.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     scale = FixedLossScale(8.0)
      ...     print(session.run([scale.scaled(tf.constant(2.0)), scale.unscaled(tf.constant(16.0))]))
      [np.float32(16.0), np.float32(2.0)]
    """

    def __init__(self, value: float) -> None:
        self._value = value

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        return loss if self._value == 1 else _scaled_loss(loss, self._value)

    def unscaled(self, gradient: Any) -> Any:
        return gradient if self._value == 1 else _times(gradient, 1 / self._value)

    def applied(
        self, gradients: Sequence[Any], apply: Callable[[], tf.Operation], global_step: tf.Variable
    ) -> tf.Operation:
        del gradients, global_step
        return apply()


class DynamicLossScale:
    """A factor that grows until gradients overflow.

    It doubles after 2,000 steps with finite gradients. A step with a gradient that is not finite changes no variable,
    and halves it; the step counts in `global_step` all the same, for its batch is gone. The factor is saved with the
    checkpoint.
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
            return self._remember(value, tf.where(due, tf.zeros_like(good), good))

        def shrink() -> tf.Tensor:
            with tf.control_dependencies([tf.assign_add(global_step, 1)]):
                return self._remember(tf.maximum(self.value / 2, 1.0), tf.zeros([], tf.int64))

        return tf.group(tf.cond(finite, grow, shrink), name="train_op")

    def _remember(self, value: tf.Tensor, good_steps: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([tf.assign(self.value, value), tf.assign(self._good_steps, good_steps)]):
            return tf.constant(True)


def _scaled_loss(loss: tf.Tensor, factor: Any) -> tf.Tensor:
    # In float32: the scaled loss itself may be more than half precision can hold, its gradient is the factor.
    return tf.cast(loss, tf.float32) * factor if loss.dtype.size < 4 else loss * tf.cast(factor, loss.dtype)


def _times(gradient: Any, factor: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    if gradient.dtype.size < 4:
        # In float32: half precision rounds the inverse of a large scale, or has 0 for it.
        return tf.cast(tf.cast(gradient, tf.float32) * factor, gradient.dtype)
    return gradient * tf.cast(factor, gradient.dtype)
