"""Variants of Adam: lazy for embeddings, with Nesterov momentum, and AdaMax."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
AdamOptimizer: Any = v1.train.AdamOptimizer


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that updates the moments of the rows of an embedding only when they have a gradient."""

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        b1, b2, rate, epsilon = _settings(self, grad.dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = b1 * tf.gather(m, indices) + (1 - b1) * grad
        new_v = b2 * tf.gather(v, indices) + (1 - b2) * tf.square(grad)
        return tf.group(
            m.scatter_update(tf.IndexedSlices(new_m, indices)),
            v.scatter_update(tf.IndexedSlices(new_v, indices)),
            var.scatter_sub(tf.IndexedSlices(rate * new_m / (tf.sqrt(new_v) + epsilon), indices)),
        )


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov momentum (Dozat, 2015)."""

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        b1_power, b2_power = (tf.cast(one, grad.dtype) for one in self._get_beta_accumulators())
        return tf.raw_ops.ResourceApplyAdam(
            var=var.handle,
            m=self.get_slot(var, "m").handle,
            v=self.get_slot(var, "v").handle,
            beta1_power=b1_power,
            beta2_power=b2_power,
            lr=tf.cast(self._lr_t, grad.dtype),
            beta1=tf.cast(self._beta1_t, grad.dtype),
            beta2=tf.cast(self._beta2_t, grad.dtype),
            epsilon=tf.cast(self._epsilon_t, grad.dtype),
            grad=grad,
            use_locking=self._use_locking,
            use_nesterov=True,
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        b1, b2, rate, epsilon = _settings(self, grad.dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        # The moments of all rows decay; those with a gradient move.
        with tf.control_dependencies([m.assign(m * b1), v.assign(v * b2)]):
            moved = [
                m.scatter_add(tf.IndexedSlices((1 - b1) * grad, indices)),
                v.scatter_add(tf.IndexedSlices((1 - b2) * tf.square(grad), indices)),
            ]
        with tf.control_dependencies(moved):
            ahead = (1 - b1) * grad + b1 * tf.gather(m.read_value(), indices)
            step = rate * ahead / (tf.sqrt(tf.gather(v.read_value(), indices)) + epsilon)
            return var.scatter_sub(tf.IndexedSlices(step, indices)).op


class AdaMaxOptimizer(AdamOptimizer):
    """Adam with the largest gradient in place of the second moment (https://arxiv.org/abs/1412.6980, section 7)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        # One, not two as Adam has: what a checkpoint of TensorFlow 1 holds.
        return self._get_non_slot_variable("beta1_power", graph=v1.get_default_graph())

    def _create_slots(self, var_list: Any) -> None:
        first = min(var_list, key=lambda one: one.name)
        self._create_non_slot_variable(initial_value=self._beta1, name="beta1_power", colocate_with=first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return tf.raw_ops.ResourceApplyAdaMax(
            var=var.handle,
            m=self.get_slot(var, "m").handle,
            v=self.get_slot(var, "v").handle,
            beta1_power=tf.cast(self._get_beta_accumulators(), grad.dtype),
            lr=tf.cast(self._lr_t, grad.dtype),
            beta1=tf.cast(self._beta1_t, grad.dtype),
            beta2=tf.cast(self._beta2_t, grad.dtype),
            epsilon=tf.cast(self._epsilon_t, grad.dtype),
            grad=grad,
            use_locking=self._use_locking,
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        lr, b1, b2, epsilon, power = (
            tf.cast(one, grad.dtype)
            for one in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t, self._get_beta_accumulators())
        )
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = b1 * tf.gather(m, indices) + (1 - b1) * grad
        new_v = tf.maximum(b2 * tf.gather(v, indices), tf.abs(grad))
        step = lr / (1 - power) * new_m / (new_v + epsilon)
        return tf.group(
            m.scatter_update(tf.IndexedSlices(new_m, indices)),
            v.scatter_update(tf.IndexedSlices(new_v, indices)),
            var.scatter_sub(tf.IndexedSlices(step, indices)),
        )

    def _finish(self, update_ops: Any, name_scope: Any) -> Any:
        with tf.control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            return tf.group(*update_ops, power.assign(power * self._beta1_t), name=name_scope)


def _settings(optimizer: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Returns beta1, beta2, the learning rate with the correction of the first steps, and epsilon."""
    b1_power, b2_power = (tf.cast(one, dtype) for one in optimizer._get_beta_accumulators())
    b1, b2, lr, epsilon = (
        tf.cast(one, dtype) for one in (optimizer._beta1_t, optimizer._beta2_t, optimizer._lr_t, optimizer._epsilon_t)
    )
    return b1, b2, lr * tf.sqrt(1 - b2_power) / (1 - b1_power), epsilon
