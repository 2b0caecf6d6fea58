"""AddSign and PowerSign (https://arxiv.org/abs/1709.07417): larger steps where gradient and momentum agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
Optimizer: Any = v1.train.Optimizer


class _SignOptimizer(Optimizer):
    """A step is learning rate * multiplier * gradient; the multiplier depends on sign(gradient) * sign(momentum)."""

    def __init__(
        self, learning_rate: Any, beta: Any, sign_decay_fn: Callable[[Any], Any] | None, use_locking: bool, name: str
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta = beta
        self._sign_decay_fn = sign_decay_fn
        self._sign_decay: Any = 1.0

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients; `global_step` is required with `sign_decay_fn`."""
        if self._sign_decay_fn is not None:
            if global_step is None:
                raise ValueError("sign_decay_fn needs global_step: pass it to minimize or apply_gradients")
            self._sign_decay = self._sign_decay_fn(global_step)
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _multiplier(self, agreement: Any) -> Any:
        raise NotImplementedError

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        beta, m = tf.cast(self._beta, grad.dtype), self.get_slot(var, "m")
        new_m = beta * m + (1 - beta) * grad
        return tf.group(m.assign(new_m), var.assign_sub(self._step(grad, new_m)))

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        beta, m = tf.cast(self._beta, grad.dtype), self.get_slot(var, "m")
        with tf.control_dependencies([m.assign(beta * m)]):
            moved = m.scatter_add(tf.IndexedSlices((1 - beta) * grad, indices))
        with tf.control_dependencies([moved]):
            step = self._step(grad, tf.gather(m.read_value(), indices))
        return tf.group(moved, var.scatter_sub(tf.IndexedSlices(step, indices)))

    def _step(self, grad: Any, momentum: Any) -> Any:
        agreement = tf.cast(self._sign_decay, grad.dtype) * tf.sign(grad) * tf.sign(momentum)
        lr = self._lr() if callable(self._lr) else self._lr
        return tf.cast(lr, grad.dtype) * self._multiplier(agreement) * grad


class AddSignOptimizer(_SignOptimizer):
    """The multiplier is alpha + decay * sign(g) * sign(m).

    Args:
      learning_rate: the learning rate.
      alpha: the multiplier where the signs cancel out.
      beta: decay of the momentum.
      sign_decay_fn: from the global step to the decay of the signs. Default: 1.
      use_locking: whether updates lock.
      name: name of the operations and slots.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: float = 1.0,
        beta: float = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha

    def _multiplier(self, agreement: Any) -> Any:
        return self._alpha + agreement


class PowerSignOptimizer(_SignOptimizer):
    """The multiplier is base ** (decay * sign(g) * sign(m)); arguments as in `AddSignOptimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: float = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._log_base = math.log(base)

    def _multiplier(self, agreement: Any) -> Any:
        return tf.exp(self._log_base * agreement)


def get_linear_decay_fn(decay_steps: int) -> Callable[[Any], Any]:
    """Returns a function of the step that falls from 1 to 0 in a line.

    Example:
      >>> with tf.Graph().as_default(), v1.Session() as session:
      ...     print(session.run(get_linear_decay_fn(10)(4)))
      0.6
    """
    return lambda step: 1 - _part(step, decay_steps)


def get_cosine_decay_fn(decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None) -> Any:
    """Returns a function of the step: a cosine of `num_periods` periods; 0 after `zero_after` periods."""

    def decay(step: Any) -> Any:
        periods = 2 * num_periods * _part(step, decay_steps)
        value = 0.5 * (1 + tf.cos(math.pi * periods))
        return value if zero_after is None else tf.where(periods >= 2 * zero_after, tf.zeros_like(value), value)

    return decay


def get_restart_decay_fn(decay_steps: int, num_periods: int = 1, zero_after: float | None = None) -> Any:
    """Returns a function of the step: half a cosine that starts again `num_periods` times."""

    def decay(step: Any) -> Any:
        periods = tf.math.floormod(num_periods * _part(step, decay_steps), 1.0)
        value = 0.5 * (1 + tf.cos(math.pi * periods))
        if zero_after is None:
            return value
        passed = 2 * num_periods * _part(step, decay_steps)
        return tf.where(passed >= 2 * zero_after, tf.zeros_like(value), value)

    return decay


def _part(step: Any, decay_steps: int) -> Any:
    return tf.minimum(tf.cast(step, tf.float32), float(decay_steps)) / float(decay_steps)
