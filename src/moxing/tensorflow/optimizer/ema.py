"""Moving averages of the weights."""

from __future__ import annotations

from collections.abc import Container, Sequence

import tensorflow.compat.v1 as tf

from moxing.framework.util.numbers_given import is_number
from moxing.tensorflow.optimizer.lookahead import copied_at_first
from moxing.tensorflow.optimizer.whole_variables import beside
from moxing.tensorflow.optimizer.wrapper import OWN_VARIABLES, GradientPairs, OptimizerWrapper
from moxing.tf1.variables import saved_name

#: A checkpoint with this variable has averages, which are meant for evaluation and export. (Averages that a script
#: keeps by itself have the same names, and are its own business.)
MARK = OWN_VARIABLES + "ema/num_updates"

_AVERAGE = "ExponentialMovingAverage"


class EmaOptimizer(OptimizerWrapper):
    """Keeps an exponential moving average of every weight that it trains, for evaluation and export.

    With the weights w after the update of the optimizer inside, and their average e, which begins as w before it:

        e = decay * e + (1 - decay) * w

    Training goes on with w. The averages are in `<variable>/ExponentialMovingAverage`, where
    `tf.train.ExponentialMovingAverage` puts them too. They begin with what the weights are before the first step, those
    of a checkpoint included. Around `batch_gradients` the average moves in every micro-step; inside, once an update.

    Args:
      optimizer: what is wrapped.
      decay: how much of the average stays in a step.
      warm_up: in step t, from 0, the decay is at most (1 + t) / (10 + t), so that the first weights are soon forgotten.
      name: of the operations.

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

    def averages(self) -> dict[str, tf.Variable]:
        """The averages by the names that the weights have in a checkpoint; a spread variable has one for each slice."""
        return dict(self._averages)

    def _create_own(self, variables: Sequence[tf.Variable]) -> None:
        self._count = self._number(MARK.removeprefix(OWN_VARIABLES), variables)
        for variable in variables:
            self._averages[variable.op.name] = self._wide_slot(variable, "average", _AVERAGE)

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        slots = [(self.get_slot(variable, "average"), variable) for _, variable in pairs]
        with tf.control_dependencies([copied_at_first(self._count, slots)]):
            applied = self._optimizer.apply_gradients(pairs)
        with tf.control_dependencies([applied]):
            rest = self._rest()
            moved = []
            for average, variable in slots:
                with beside(variable):
                    weights = tf.cast(variable.read_value(), average.dtype)
                    step = (average.read_value() - weights) * tf.cast(rest, average.dtype)
                    moved.append(average.assign_sub(step, read_value=False))
        with tf.control_dependencies(moved):
            return self._count.assign_add(1, read_value=False)

    def _rest(self) -> tf.Tensor:
        """1 - decay, of this step."""
        if not self._warm_up:
            return tf.constant(1.0 - self._decay, tf.float64)
        done = tf.cast(self._count.read_value(), tf.float64)
        return 1.0 - tf.minimum(tf.constant(self._decay, tf.float64), (1.0 + done) / (10.0 + done))


def average_in(names: Container[str], variable: tf.Variable) -> str | None:
    """The name of a variable's average, where `names`, those of a checkpoint or a graph, have averages of this class.

    Example:
      >>> with tf.Graph().as_default():
      ...     w = tf.get_variable('w', [2])
      >>> average_in({MARK, 'w/ExponentialMovingAverage'}, w), average_in({'w/ExponentialMovingAverage'}, w)
      ('w/ExponentialMovingAverage', None)
    """
    name = averaged_name(variable)
    return name if MARK in names and variable.trainable and name in names else None


def averaged_name(variable: tf.Variable) -> str:
    """What the average of a variable is called in a checkpoint.

    Example:
      >>> with tf.Graph().as_default():
      ...     averaged_name(tf.get_variable('net/w', [2]))
      'net/w/ExponentialMovingAverage'
    """
    return f"{saved_name(variable)}/{_AVERAGE}"
