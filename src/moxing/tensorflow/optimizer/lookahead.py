"""Slow weights that follow the fast ones."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.numbers_given import is_integer
from moxing.tensorflow.optimizer.whole_variables import beside
from moxing.tensorflow.optimizer.wrapper import GradientPairs, OptimizerWrapper, when


class LookaheadOptimizer(OptimizerWrapper):
    """Lookahead: Zhang et al., Lookahead optimizer: k steps forward, 1 step back, 2019.

    With the weights w, which the optimizer inside moves, and the slow weights s, which begin as w:

        every k steps:  s = s + alpha * (w - s),  w = s

    The slow weights are in `<variable>/Lookahead`. They begin with what the weights are before the first step, those of
    a checkpoint included.

    Args:
      optimizer: what is wrapped.
      k: how many steps the optimizer inside does between two of the slow weights.
      alpha: how far the slow weights follow.
      name: of the operations and slots.

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

    def _create_own(self, variables: Sequence[tf.Variable]) -> None:
        self._count = self._number("lookahead/steps", variables)
        for variable in variables:
            self._wide_slot(variable, "slow", self.get_name())

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        slots = [(self.get_slot(variable, "slow"), variable) for _, variable in pairs]

        def follow() -> tf.Operation:
            moved = []
            for slow, variable in slots:
                with beside(variable):
                    fast = tf.cast(variable.read_value(), slow.dtype)
                    new = tf.assign_add(slow, self._alpha * (fast - slow.read_value()))
                    moved.append(variable.assign(tf.cast(new, variable.dtype.base_dtype), read_value=False))
            return tf.group(*moved)

        begun = copied_at_first(self._count, slots)
        with tf.control_dependencies([begun]):
            applied = self._optimizer.apply_gradients(pairs)
        with tf.control_dependencies([applied]):
            count = tf.assign_add(self._count, 1)
        return when(tf.equal(count % self._k, 0), follow)


def copied_at_first(count: tf.Variable, slots: Sequence[tuple[Any, tf.Variable]]) -> tf.Operation:
    """Gives slots the values of their variables when `count` is 0.

    Not by an initializer: a warm start brings the variables from a checkpoint that has no such slots.
    """

    def copy() -> tf.Operation:
        return tf.group(
            *[slot.assign(tf.cast(variable.read_value(), slot.dtype), read_value=False) for slot, variable in slots]
        )

    return when(tf.equal(count.read_value(), 0), copy)
