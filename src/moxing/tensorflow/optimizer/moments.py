"""Base class of adamw, lamb and nadam: two moments of the gradient, a step counter, weight decay."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.whole_variables import colocated_with
from moxing.tf1.graph.variables import saved_name


@dataclass(frozen=True)
class MomentSettings:
    """The constants of an optimizer with moments.

    Attributes:
      beta1: decay rate of `m`.
      beta2: decay rate of `v`.
      epsilon: added to the root of the corrected `v`.
      weight_decay: the weight decay; see the optimizer.
      exclude: regular expressions, searched in the names of variables without weight decay.
    """

    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float = 0.0
    exclude: Sequence[str] | None = None


class MomentsOptimizer(tf.train.Optimizer):
    """An optimizer with the moments `m` and `v` of the gradient, in `<variable>/<name>/m` and `.../v`.

    A sparse gradient has the same effect as its dense form: rows without a gradient move by their moments too. The
    variables must be resource variables, as in `mox.run`.

    Args:
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      settings: the constants of the update.
      use_locking: true if updates lock the variables.
      name: name of the operations and slots.
    """

    def __init__(self, learning_rate: Any, settings: MomentSettings, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        exclude = settings.exclude
        for argument, below in (("beta1", 1.0), ("beta2", 1.0), ("epsilon", math.inf), ("weight_decay", math.inf)):
            value = getattr(settings, argument)
            if not isinstance(value, numbers.Real) or not 0 <= float(value) < below:
                raise ValueError(f"{name}({argument}={value!r}): expected a number from 0 to below {below:g}.")
        if isinstance(exclude, str):
            raise ValueError(f"{name}(exclude={exclude!r}): expected a list of regular expressions, [{exclude!r}].")
        self._rate = learning_rate
        self._beta1, self._beta2, self._epsilon = (
            float(value) for value in (settings.beta1, settings.beta2, settings.epsilon)
        )
        self._weight_decay = float(settings.weight_decay)
        try:
            self._exclude = [re.compile(pattern) for pattern in exclude or ()]
        except (re.error, TypeError) as error:
            raise ValueError(f"{name}(exclude={exclude!r}): expected regular expressions: {error}.") from None

    def _decays(self, variable: tf.Variable) -> bool:
        return self._weight_decay > 0 and not self._excluded(variable)

    def _excluded(self, variable: tf.Variable) -> bool:
        return any(pattern.search(saved_name(variable)) for pattern in self._exclude)

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        # Colocated with the first variable by name, which is the same on all workers.
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
        # In 64 bits: with 32 bits 1 - 0.999 ** t is wrong in the fifth digit.
        self._count = tf.cast(self._step().read_value() + 1, tf.float64)
        self._correction1 = 1.0 - self._beta1**self._count
        self._correction2 = 1.0 - self._beta2**self._count

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> tf.Operation:
        step = self._step()
        with tf.control_dependencies(update_ops), colocated_with(step):
            return tf.group(*update_ops, tf.assign_add(step, 1), name=name_scope)

    def _moments(self, gradient: tf.Tensor, variable: tf.Variable) -> tuple[tf.Tensor, tf.Tensor]:
        """Updates both moments and returns them."""
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
        # The dense form adds up duplicates.
        return self._resource_apply_sparse(grad, var, indices)

    def _apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        raise TypeError(
            f"{self.get_name()}: {var.op.name} is not a resource variable. Call tf.enable_resource_variables() first; "
            "mox.run does so."
        )

    _apply_sparse_duplicate_indices = _apply_dense


def _dense(values: tf.Tensor, indices: tf.Tensor, variable: tf.Variable) -> tf.Tensor:
    shape = tf.shape(variable, out_type=indices.dtype)
    return tf.scatter_nd(tf.expand_dims(indices, -1), values, shape)
