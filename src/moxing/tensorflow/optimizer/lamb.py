"""LAMB: Adam with layer-wise step lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.moments import MomentSettings, MomentsOptimizer
from moxing.tensorflow.optimizer.whole_variables import colocated_with, whole_norms


class LambOptimizer(MomentsOptimizer):
    """LAMB: You et al., Large batch optimization for deep learning, 2019.

    With the gradient g, in step t, for every variable:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g²
        u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * w
        w = w - rate * |w| / |u| * u

    The ratio is 1 if |w| or |u| is 0. The norms are those of the whole variable, even if it is partitioned over several
    parameter servers.

    Args:
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      weight_decay: the weight decay.
      beta1: decay rate of `m`.
      beta2: decay rate of `v`.
      epsilon: avoids a division by 0.
      exclude: regular expressions, searched in the names of variables with plain Adam updates: no decay, no ratio.
      use_locking: true if updates lock the variables.
      name: name of the operations and slots.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=[3.0, 4.0], use_resource=True)
      ...     train = LambOptimizer(0.1, weight_decay=0.0).minimize(tf.reduce_sum(w))
      ...     session.run(tf.global_variables_initializer())
      ...     session.run(train)
      ...     print(session.run(w).round(3))
      [2.646 3.646]
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        exclude: Sequence[str] | None = None,
        use_locking: bool = False,
        name: str = "LAMB",
    ) -> None:
        settings = MomentSettings(beta1, beta2, epsilon, weight_decay, exclude)
        super().__init__(learning_rate, settings, use_locking, name)

    def _prepare(self) -> None:
        super()._prepare()
        self._updates: list[tuple[tf.Tensor, tf.Variable]] = []

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        """Computes the direction; `_finish` applies it when the norms over all partitions of the variable are known."""
        m, v = self._moments(grad, var)
        root = tf.sqrt(v * tf.cast(1.0 / self._correction2, grad.dtype)) + self._epsilon
        update = m * tf.cast(1.0 / self._correction1, grad.dtype) / root
        if self._decays(var):
            update += self._weight_decay * var
        self._updates.append((update, var))
        return update.op

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> tf.Operation:
        variables = [variable for _, variable in self._updates]
        lengths = whole_norms([variable.read_value() for variable in variables], variables)
        steps = whole_norms([update for update, _ in self._updates], variables)
        moved = []
        for (update, variable), length, step in zip(self._updates, lengths, steps, strict=True):
            ratio = tf.ones_like(length)
            if not self._excluded(variable):
                ratio = tf.where((length > 0) & (step > 0), tf.math.divide_no_nan(length, step), ratio)
            with colocated_with(variable):
                rate = tf.cast(tf.cast(self._rate_tensor, ratio.dtype) * ratio, update.dtype)
                moved.append(tf.assign_sub(variable, rate * update, use_locking=self._use_locking).op)
        return super()._finish([*update_ops, *moved], name_scope)
