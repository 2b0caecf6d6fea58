"""What adamw, lamb and nadam share: two moments of the gradient, a step counter, weight decay."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.whole_variables import beside
from moxing.tf1.variables import saved_name


class MomentsOptimizer(tf.train.Optimizer):
    """An optimizer with the moments `m` and `v` of the gradient, in `<variable>/<name>/m` and `.../v`.

    A sparse gradient changes what its dense form would: also rows that it does not name move by their moments. The
    variables must be resource variables, as they are in `mox.run`.

    Args:
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      beta1: how much of `m` stays in a step.
      beta2: how much of `v` stays in a step.
      epsilon: added to the root of the corrected `v`.
      weight_decay: what is taken off the weights; see the class.
      exclude: regular expressions, searched in names of variables that `weight_decay` leaves alone.
      use_locking: updates lock the variables.
      name: of the operations and slots.
    """

    def __init__(
        self,
        learning_rate: Any,
        beta1: float,
        beta2: float,
        epsilon: float,
        weight_decay: float,
        exclude: Sequence[str] | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        for argument, value, below in (
            ("beta1", beta1, 1.0),
            ("beta2", beta2, 1.0),
            ("epsilon", epsilon, math.inf),
            ("weight_decay", weight_decay, math.inf),
        ):
            if not isinstance(value, numbers.Real) or not 0 <= float(value) < below:
                raise ValueError(f"{name}({argument}={value!r}): expected a number from 0 to below {below:g}.")
        if isinstance(exclude, str):
            raise ValueError(f"{name}(exclude={exclude!r}): expected a list of regular expressions, [{exclude!r}].")
        self._rate = learning_rate
        self._beta1, self._beta2, self._epsilon = float(beta1), float(beta2), float(epsilon)
        self._weight_decay = float(weight_decay)
        try:
            self._exclude = [re.compile(pattern) for pattern in exclude or ()]
        except (re.error, TypeError) as error:
            raise ValueError(f"{name}(exclude={exclude!r}): expected regular expressions: {error}.") from None

    def _decays(self, variable: tf.Variable) -> bool:
        return self._weight_decay > 0 and not self._excluded(variable)

    def _excluded(self, variable: tf.Variable) -> bool:
        return any(pattern.search(saved_name(variable)) for pattern in self._exclude)

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        # With the first by name: the same on all workers, whatever their order.
        first = min(var_list, key=lambda variable: variable.name)
        self._create_non_slot_variable(tf.zeros([], tf.int64), f"{self.get_name()}/step", first)
        for variable in var_list:
            self._zeros_slot(variable, "m", f"{self.get_name()}/m")
            self._zeros_slot(variable, "v", f"{self.get_name()}/v")

    def _step(self) -> tf.Variable:
        with tf.init_scope():
            return self._get_non_slot_variable(f"{self.get_name()}/step", graph=tf.get_default_graph())

    def _prepare(self) -> None:
        rate = self._rate() if callable(self._rate) else self._rate
        self._rate_tensor = tf.convert_to_tensor(rate, name="learning_rate")
        # In 64 bits: 1 - 0.999 ** t of a 32-bit 0.999 is wrong in the fifth digit.
        self._count = tf.cast(self._step().read_value() + 1, tf.float64)
        self._correction1 = 1.0 - self._beta1**self._count
        self._correction2 = 1.0 - self._beta2**self._count

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> tf.Operation:
        step = self._step()
        with tf.control_dependencies(update_ops), beside(step):
            return tf.group(*update_ops, tf.assign_add(step, 1), name=name_scope)

    def _moments(self, gradient: tf.Tensor, variable: tf.Variable) -> tuple[tf.Tensor, tf.Tensor]:
        """Moves both moments and returns them."""
        m, v = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        new_m = self._beta1 * m + (1.0 - self._beta1) * gradient
        new_v = self._beta2 * v + (1.0 - self._beta2) * tf.square(gradient)
        return (
            tf.assign(m, new_m, use_locking=self._use_locking),
            tf.assign(v, new_v, use_locking=self._use_locking),
        )

    def _resource_apply_sparse(self, grad: tf.Tensor, var: tf.Variable, indices: tf.Tensor) -> tf.Operation:
        return self._resource_apply_dense(_dense(grad, indices, var), var)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: tf.Tensor, var: tf.Variable, indices: tf.Tensor
    ) -> tf.Operation:
        # The dense form is the sum of the duplicates anyway.
        return self._resource_apply_sparse(grad, var, indices)

    def _apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        raise TypeError(
            f"{self.get_name()}: {var.op.name} is not a resource variable. Call tf.enable_resource_variables() first; "
            "mox.run does it by itself."
        )

    _apply_sparse_duplicate_indices = _apply_dense


def _dense(values: tf.Tensor, indices: tf.Tensor, variable: tf.Variable) -> tf.Tensor:
    shape = tf.shape(variable, out_type=indices.dtype)
    return tf.scatter_nd(tf.expand_dims(indices, -1), values, shape)
