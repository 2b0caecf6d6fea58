"""Momentum that falls when the learning rate rises."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.number_checks import is_number
from moxing.tensorflow.optimizer.whole_variables import colocated_with
from moxing.tensorflow.optimizer.wrappers.lars import is_adapted, lars_gradients
from moxing.tensorflow.optimizer.wrappers.wrapper import GradientPairs

#: The trust ratio of `use_lars`.
_LARS_RATIO = 0.001


class DyMomentumOptimizer(tf.train.MomentumOptimizer):
    """Momentum with a factor that goes against the learning rate, as in Smith, Topin, Super-convergence, 2017.

    With h, the position of the rate between `min_lr` (0) and `max_lr` (1):

        momentum = max_mom - (max_mom - min_mom) * h
        g = g + weight_decay * w,  a = momentum * a + g,  w = w - lr * a

    In the last `cooldown * max_iteration` steps the momentum is `max_mom`. Biases and the variables of normalisation
    have no decay. With `use_lars` the gradients are scaled by LARS with a ratio of 0.001, decay included.

    (Only the signature of the original and the defaults of a training service are known. The linear relation, the
    cool-down and the ratio of LARS are choices of this implementation.)

    Args:
      lr: the learning rate: a number, a tensor or a function without arguments that returns one.
      max_lr: the highest learning rate.
      min_lr: the lowest learning rate.
      max_mom: momentum at the lowest rate.
      min_mom: momentum at the highest rate.
      global_step: the step; None: the global step of the graph.
      max_iteration: number of steps of the training; None: no cool-down.
      use_nesterov: true for Nesterov momentum.
      cooldown: fraction of the training that is the cool-down.
      use_lars: true for LARS.
      weight_decay: the weight decay.
      name: of the operations and slots; by default that of the class.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     optimizer = DyMomentumOptimizer(tf.constant(2.0), max_lr=6.0, min_lr=1.0, max_mom=0.95, min_mom=0.85)
      ...     round(float(session.run(optimizer.get_momentum())), 4)
      0.93
    """

    def __init__(
        self,
        lr: Any,
        max_lr: float,
        min_lr: float,
        max_mom: float = 0.98,
        min_mom: float = 0.85,
        global_step: Any = None,
        max_iteration: int | None = None,
        use_nesterov: bool = True,
        cooldown: float = 0.05,
        use_lars: bool = False,
        weight_decay: float = 0.0,
        name: str | None = None,
    ) -> None:
        name = name or type(self).__name__.removesuffix("Optimizer")
        _check_order(name, "max_lr", max_lr, "min_lr", min_lr, math.inf)
        _check_order(name, "max_mom", max_mom, "min_mom", min_mom, 1.0)
        if not isinstance(cooldown, numbers.Real) or not 0 <= float(cooldown) < 1:
            raise ValueError(f"{name}(cooldown={cooldown!r}): expected a number from 0 to below 1.")
        if not isinstance(weight_decay, numbers.Real) or not 0 <= float(weight_decay) < math.inf:
            raise ValueError(f"{name}(weight_decay={weight_decay!r}): expected a number from 0.")
        if max_iteration is not None and (not isinstance(max_iteration, numbers.Real) or max_iteration <= 0):
            raise ValueError(f"{name}(max_iteration={max_iteration!r}): expected a positive number, or None.")
        rate = tf.convert_to_tensor(lr() if callable(lr) else lr)
        high = tf.cast((tf.cast(rate, tf.float64) - min_lr) / ((max_lr - min_lr) or 1.0), tf.float64)
        momentum = max_mom - (max_mom - min_mom) * tf.clip_by_value(high, 0.0, 1.0)
        if max_iteration is not None and cooldown:
            step = tf.train.get_or_create_global_step() if global_step is None else global_step
            cooling = tf.cast(step, tf.float64) >= (1.0 - cooldown) * max_iteration
            momentum = tf.where(cooling, tf.constant(max_mom, tf.float64), momentum)
        momentum = tf.cast(momentum, tf.float32, name="momentum")
        super().__init__(rate, momentum, name=name, use_nesterov=use_nesterov)
        self._use_lars: bool = bool(use_lars)
        self._weight_decay: float = float(weight_decay)

    def get_momentum(self) -> tf.Tensor:
        """Returns the momentum of the current step."""
        return self._momentum

    def apply_gradients(
        self, grads_and_vars: Any, global_step: tf.Variable | None = None, name: str | None = None
    ) -> tf.Operation:
        """Applies the gradients, with weight decay and LARS."""
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        return super().apply_gradients(self._transformed(pairs), global_step=global_step, name=name)

    def _transformed(self, pairs: Sequence[tuple[Any, tf.Variable]]) -> GradientPairs:
        """Returns the gradients with weight decay or LARS."""
        if self._use_lars:
            return lars_gradients(pairs, _LARS_RATIO, self._weight_decay)
        if not self._weight_decay:
            return list(pairs)
        return [(self._decayed(gradient, variable), variable) for gradient, variable in pairs]

    def _decayed(self, gradient: Any, variable: tf.Variable) -> Any:
        if not is_adapted(variable):
            return gradient
        with colocated_with(variable):
            decay = self._weight_decay * variable.read_value()
            if isinstance(gradient, tf.IndexedSlices):
                return tf.tensor_scatter_nd_add(decay, tf.expand_dims(gradient.indices, -1), gradient.values)
            return gradient + decay


def _check_order(name: str, high: str, above: Any, low: str, below: Any, limit: float) -> None:
    for argument, value in ((high, above), (low, below)):
        if not is_number(value) or not 0 <= float(value) < limit:
            raise ValueError(f"{name}({argument}={value!r}): expected a number from 0 to below {limit:g}.")
    if above < below:
        raise ValueError(f"{name}({high}={above!r}): expected at least {low}={below!r}.")
