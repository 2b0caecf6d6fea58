"""Lookahead: slow weights that follow the fast ones."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.number_checks import is_integer
from moxing.tensorflow.optimizer.whole_variables import colocated_with
from moxing.tensorflow.optimizer.wrappers.wrapper import GradientPairs, OptimizerWrapper, when


class LookaheadOptimizer(OptimizerWrapper):
    """Lookahead: Zhang et al., Lookahead optimizer: k steps forward, 1 step back, 2019.

    With the weights w, which the optimizer inside updates, and the slow weights s, initially w:

        every k steps:  s = s + alpha * (w - s),  w = s

    The slow weights are in `<variable>/Lookahead`. They are copied from the weights before the first step, after a
    checkpoint was restored.

    Args:
      optimizer: the optimizer inside.
      k: number of steps between two updates of the slow weights.
      alpha: step size of the slow weights.
      name: name of the operations and slots.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=8.0, use_resource=True)
      ...     train = LookaheadOptimizer(tf.train.GradientDescentOptimizer(1.0), k=2, alpha=0.5).minimize(w)
      ...     session.run(tf.global_variables_initializer())
      ...     [session.run(train) or float(session.run(w)) for _ in range(4)]
      [7.0, 7.0, 6.0, 6.0]
    """

    def __init__(self, optimizer: tf.train.Optimizer, k: int = 5, alpha: float = 0.5, name: str = "Lookahead") -> None:
        if not is_integer(k, 1):
            raise ValueError(f"lookahead(k={k!r}): expected an integer from 1.")
        if not isinstance(alpha, numbers.Real) or not 0 < float(alpha) <= 1:
            raise ValueError(f"lookahead(alpha={alpha!r}): expected a number above 0, up to 1.")
        super().__init__(optimizer, name)
        self._k: int = int(k)
        self._alpha: float = float(alpha)

    def easgd_conflict(self, side: str) -> str | None:
        if side != "around":
            return None
        return "lookahead around easgd: its slow weights are the worker's own: put lookahead inside of easgd"

    def _create_variables(self, variables: Sequence[tf.Variable]) -> None:
        self._count = self._create_counter("lookahead/steps", variables)
        for variable in variables:
            self._create_wide_slot(variable, "slow", self.get_name())

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        slots = [(self.get_slot(variable, "slow"), variable) for _, variable in pairs]

        def follow() -> tf.Operation:
            moved = []
            for slow, variable in slots:
                with colocated_with(variable):
                    fast = tf.cast(variable.read_value(), slow.dtype)
                    new = tf.assign_add(slow, self._alpha * (fast - slow.read_value()))
                    moved.append(variable.assign(tf.cast(new, variable.dtype.base_dtype), read_value=False))
            return tf.group(*moved)

        begun = copy_before_first_step(self._count, slots)
        with tf.control_dependencies([begun]):
            applied = self._optimizer.apply_gradients(pairs)
        with tf.control_dependencies([applied]):
            count = tf.assign_add(self._count, 1)
        return when(tf.equal(count % self._k, 0), follow)


def copy_before_first_step(count: tf.Variable, slots: Sequence[tuple[Any, tf.Variable]]) -> tf.Operation:
    """Copies variables into their slots if `count` is 0.

    An initializer would be too early: a warm start restores the variables from a checkpoint without these slots.
    """

    def copy() -> tf.Operation:
        return tf.group(
            *[slot.assign(tf.cast(variable.read_value(), slot.dtype), read_value=False) for slot, variable in slots]
        )

    return when(tf.equal(count.read_value(), 0), copy)
