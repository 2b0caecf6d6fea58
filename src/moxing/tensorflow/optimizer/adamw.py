"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.moments import MomentSettings, MomentsOptimizer


class AdamWOptimizer(MomentsOptimizer):
    """AdamW: Loshchilov, Hutter, Decoupled weight decay regularization, 2017.

    With the gradient g, in step t:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g²
        w = w - rate * weight_decay * w - rate * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)

    The decay is multiplied by the learning rate, as in most current libraries.

    Args:
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      weight_decay: the weight decay, before it is multiplied by the learning rate.
      beta1: decay rate of `m`.
      beta2: decay rate of `v`.
      epsilon: avoids a division by 0.
      exclude: regular expressions, searched in the names of variables without decay, such as `["bias", "LayerNorm"]`.
      use_locking: true if updates lock the variables.
      name: name of the operations and slots.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=1.0, use_resource=True)
      ...     train = AdamWOptimizer(0.1, weight_decay=0.5).minimize(3 * w)
      ...     session.run(tf.global_variables_initializer())
      ...     session.run(train)
      ...     round(float(session.run(w)), 3)
      0.85
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        exclude: Sequence[str] | None = None,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        settings = MomentSettings(beta1, beta2, epsilon, weight_decay, exclude)
        super().__init__(learning_rate, settings, use_locking, name)

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        rate = tf.cast(self._rate_tensor, grad.dtype)
        decayed = []
        if self._decays(var):
            # After the gradient, which is that of the weights before the decay.
            with tf.control_dependencies([grad]):
                decay = rate * self._weight_decay * var.read_value()
                decayed.append(var.assign_sub(decay, use_locking=self._use_locking, read_value=False))
        with tf.control_dependencies(decayed):
            return tf.raw_ops.ResourceApplyAdam(
                var=var.handle,
                m=self.get_slot(var, "m").handle,
                v=self.get_slot(var, "v").handle,
                # The kernel expects powers of the betas: 1 minus the corrections.
                beta1_power=tf.cast(1.0 - self._correction1, grad.dtype),
                beta2_power=tf.cast(1.0 - self._correction2, grad.dtype),
                lr=rate,
                beta1=tf.constant(self._beta1, grad.dtype),
                beta2=tf.constant(self._beta2, grad.dtype),
                # The kernel adds epsilon to the root of the uncorrected moment.
                epsilon=tf.cast(self._epsilon * tf.sqrt(self._correction2), grad.dtype),
                grad=grad,
                use_locking=self._use_locking,
            )
