"""Momentum that falls when the learning rate rises, with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.dynamic_momentum import _LARS_RATIO, DyMomentumOptimizer
from moxing.tensorflow.optimizer.wrappers.lars import is_adapted, lars_gradients
from moxing.tensorflow.optimizer.wrappers.wrapper import GradientPairs


class DyMomentumWOptimizer(DyMomentumOptimizer):
    """`DyMomentumOptimizer` with decoupled weight decay.

    After Loshchilov, Hutter, Decoupled weight decay regularization, 2017:

        a = momentum * a + g,  w = w - lr * weight_decay * w - lr * a

    The arguments are those of `DyMomentumOptimizer`. With `use_lars` the gradients are scaled by LARS without decay.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=[[2.0]], use_resource=True)
      ...     optimizer = DyMomentumWOptimizer(0.1, max_lr=0.1, min_lr=0.1, weight_decay=0.5, use_nesterov=False)
      ...     train = optimizer.minimize(w[0, 0])
      ...     session.run(tf.global_variables_initializer())
      ...     session.run(train)
      ...     print(session.run(w))
      [[1.8]]
    """

    def _transformed(self, pairs: Sequence[tuple[Any, tf.Variable]]) -> GradientPairs:
        return lars_gradients(pairs, _LARS_RATIO, 0.0) if self._use_lars else list(pairs)

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        with tf.control_dependencies(self._decayed_weights(grad, var)):
            return super()._resource_apply_dense(grad, var)

    def _resource_apply_sparse(self, grad: tf.Tensor, var: tf.Variable, indices: tf.Tensor) -> tf.Operation:
        with tf.control_dependencies(self._decayed_weights(grad, var)):
            return super()._resource_apply_sparse(grad, var, indices)

    def _decayed_weights(self, grad: tf.Tensor, var: tf.Variable) -> list[tf.Operation]:
        if not self._weight_decay or not is_adapted(var):
            return []
        # After the gradient, which is that of the weights before the decay.
        with tf.control_dependencies([grad]):
            rate = tf.cast(self._learning_rate_tensor, var.dtype.base_dtype)
            return [var.assign_sub(rate * self._weight_decay * var.read_value(), read_value=False)]
