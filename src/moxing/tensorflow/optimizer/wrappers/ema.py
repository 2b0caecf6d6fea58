"""Exponential moving averages of the weights."""

from __future__ import annotations

from collections.abc import Container, Sequence

import tensorflow.compat.v1 as tf

from moxing.framework.util.number_checks import is_number
from moxing.tensorflow.optimizer.whole_variables import colocated_with
from moxing.tensorflow.optimizer.wrappers.lookahead import copy_before_first_step
from moxing.tensorflow.optimizer.wrappers.wrapper import OWN_VARIABLES, GradientPairs, OptimizerWrapper
from moxing.tf1.graph.variables import saved_name

#: A checkpoint with this variable has averages for evaluation and export. Averages that a script computes itself have
#: the same names, but not this variable.
MARK = OWN_VARIABLES + "ema/num_updates"

_AVERAGE = "ExponentialMovingAverage"


class EmaOptimizer(OptimizerWrapper):
    """Keeps an exponential moving average of every weight that it trains, for evaluation and export.

    With the weights w after the update of the optimizer inside, and their average e, initially w before the update:

        e = decay * e + (1 - decay) * w

    Training continues with w. The averages are in `<variable>/ExponentialMovingAverage`, as those of
    `tf.train.ExponentialMovingAverage`. They are copied from the weights before the first step, after a checkpoint was
    restored. Around `batch_gradients` the average moves in every micro-step; inside of it, once per update.

    Args:
      optimizer: the optimizer inside.
      decay: decay rate of the average.
      warm_up: in step t, from 0, the decay is at most (1 + t) / (10 + t), so that the first weights are forgotten soon.
      name: name of the operations.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=8.0, use_resource=True)
      ...     optimizer = EmaOptimizer(tf.train.GradientDescentOptimizer(1.0), decay=0.5)
      ...     train = optimizer.minimize(w)
      ...     session.run(tf.global_variables_initializer())
      ...     session.run(train)
      ...     (average,) = optimizer.averages().values()
      ...     average.op.name, *session.run([w, average])
      ('w/ExponentialMovingAverage', np.float32(7.0), np.float32(7.5))
    """

    repeatable = False

    def __init__(
        self, optimizer: tf.train.Optimizer, decay: float = 0.9999, warm_up: bool = False, name: str = "EMA"
    ) -> None:
        if not is_number(decay) or not 0 <= float(decay) < 1:
            raise ValueError(f"ema(decay={decay!r}): expected a number from 0 to below 1, such as 0.9999.")
        if not isinstance(warm_up, bool):
            raise ValueError(f"ema(warm_up={warm_up!r}): expected True or False.")
        super().__init__(optimizer, name)
        self._decay: float = float(decay)
        self._warm_up: bool = warm_up
        self._averages: dict[str, tf.Variable] = {}

    def easgd_conflict(self, side: str) -> str:
        return (
            f"ema {side} easgd: averages of a worker's own variables would be in no checkpoint; the center is an "
            "average already"
        )

    def averages(self) -> dict[str, tf.Variable]:
        """Returns the averages by the names of the weights; a partitioned variable has one for each partition."""
        return dict(self._averages)

    def _create_variables(self, variables: Sequence[tf.Variable]) -> None:
        self._count = self._create_counter(MARK.removeprefix(OWN_VARIABLES), variables)
        for variable in variables:
            self._averages[variable.op.name] = self._create_wide_slot(variable, "average", _AVERAGE)

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        slots = [(self.get_slot(variable, "average"), variable) for _, variable in pairs]
        with tf.control_dependencies([copy_before_first_step(self._count, slots)]):
            applied = self._optimizer.apply_gradients(pairs)
        with tf.control_dependencies([applied]):
            rest = self._rest()
            moved = []
            for average, variable in slots:
                with colocated_with(variable):
                    weights = tf.cast(variable.read_value(), average.dtype)
                    step = (average.read_value() - weights) * tf.cast(rest, average.dtype)
                    moved.append(average.assign_sub(step, read_value=False))
        with tf.control_dependencies(moved):
            return self._count.assign_add(1, read_value=False)

    def _rest(self) -> tf.Tensor:
        """Returns 1 - decay for this step."""
        if not self._warm_up:
            return tf.constant(1.0 - self._decay, tf.float64)
        done = tf.cast(self._count.read_value(), tf.float64)
        return 1.0 - tf.minimum(tf.constant(self._decay, tf.float64), (1.0 + done) / (10.0 + done))


def average_in(names: Container[str], variable: tf.Variable) -> str | None:
    """Returns the name of a variable's average if `names`, of a checkpoint or a graph, has averages of this class.

    Example:
      >>> with tf.Graph().as_default():
      ...     w = tf.get_variable('w', [2])
      >>> average_in({MARK, 'w/ExponentialMovingAverage'}, w), average_in({'w/ExponentialMovingAverage'}, w)
      ('w/ExponentialMovingAverage', None)
    """
    name = averaged_name(variable)
    return name if MARK in names and variable.trainable and name in names else None


def averaged_name(variable: tf.Variable) -> str:
    """Returns the name of a variable's average in a checkpoint.

    Example:
      >>> with tf.Graph().as_default():
      ...     averaged_name(tf.get_variable('net/w', [2]))
      'net/w/ExponentialMovingAverage'
    """
    return f"{saved_name(variable)}/{_AVERAGE}"
