"""Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.moments import MomentSettings, MomentsOptimizer


class NadamOptimizer(MomentsOptimizer):
    """Nadam: Dozat, Incorporating Nesterov momentum into Adam, 2016, with a constant momentum.

    With the gradient g, in step t:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g²
        n = beta1 * m / (1 - beta1^(t+1)) + (1 - beta1) * g / (1 - beta1^t)
        w = w - rate * n / (sqrt(v / (1 - beta2^t)) + epsilon)

    Args:
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      beta1: decay rate of `m`.
      beta2: decay rate of `v`.
      epsilon: avoids a division by 0.
      use_locking: true if updates lock the variables.
      name: name of the operations and slots.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=1.0, use_resource=True)
      ...     train = NadamOptimizer(0.1).minimize(3 * w)
      ...     session.run(tf.global_variables_initializer())
      ...     session.run(train)
      ...     round(float(session.run(w)), 3)
      0.853
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "Nadam",
    ) -> None:
        super().__init__(learning_rate, MomentSettings(beta1, beta2, epsilon), use_locking, name)

    def _prepare(self) -> None:
        super()._prepare()
        self._next_correction1 = 1.0 - self._beta1 ** (self._count + 1.0)

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        m, v = self._moments(grad, var)

        def number(value: tf.Tensor) -> tf.Tensor:
            return tf.cast(value, grad.dtype)

        ahead = m * number(self._beta1 / self._next_correction1) + grad * number(
            (1.0 - self._beta1) / self._correction1
        )
        root = tf.sqrt(v * number(1.0 / self._correction2)) + self._epsilon
        return tf.assign_sub(var, number(self._rate_tensor) * ahead / root, use_locking=self._use_locking).op
