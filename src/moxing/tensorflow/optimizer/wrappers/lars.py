"""A learning rate for every layer, by the norms of its weights and gradients."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.whole_variables import colocated_with, whole_norms
from moxing.tensorflow.optimizer.wrappers.wrapper import GradientPairs, OptimizerWrapper
from moxing.tf1.graph.variables import saved_name, saved_shape

#: Biases, and the variables of normalisation, by words in their names.
_PLAIN = re.compile(
    r"batch_?norm|layer_?norm|group_?norm|instance_?norm|(^|[/_])(gamma|beta|bias|biases)(_\d+)?($|/)", re.I
)


class LarsOptimizer(OptimizerWrapper):
    """LARS: You, Gitman, Ginsburg, Large batch training of convolutional networks, 2017.

    With the weights w of a layer, their gradient g and d, `weight_decay`:

        local = ratio * |w| / (|g| + d * |w|)
        the optimizer inside gets  local * (g + d * w)

    Where |w| or the denominator is 0, `local` is 1. Biases and the variables of normalisation (those of at most one
    dimension, and those with batch_norm, gamma, beta, bias and the like in their names) get their plain gradients,
    without decay. Do not use a regularizer in the model as well. The norms are those of the whole
    variable, even if it is partitioned over several parameter servers.

    Args:
      optimizer: what is wrapped; the paper's is momentum.
      ratio: the trust ratio: length of a step relative to the norm of the weights.
      weight_decay: the weight decay.
      name: name of the operations.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=[[3.0], [4.0]], use_resource=True)
      ...     optimizer = LarsOptimizer(tf.train.GradientDescentOptimizer(1.0), ratio=0.1)
      ...     train = optimizer.minimize(100 * w[0, 0])
      ...     session.run(tf.global_variables_initializer())
      ...     session.run(train)
      ...     print(session.run(w)[:, 0])
      [2.5 4. ]
    """

    repeatable = False

    def __init__(
        self, optimizer: tf.train.Optimizer, ratio: float = 0.001, weight_decay: float = 0.0, name: str = "LARS"
    ) -> None:
        check_lars(ratio, weight_decay)
        super().__init__(optimizer, name)
        self._ratio, self._weight_decay = float(ratio), float(weight_decay)

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        return self._optimizer.apply_gradients(lars_gradients(pairs, self._ratio, self._weight_decay))


def check_lars(ratio: Any, weight_decay: Any) -> None:
    """Raises a ValueError for a wrong argument."""
    if not isinstance(ratio, numbers.Real) or not 0 < float(ratio) < math.inf:
        raise ValueError(f"lars(ratio={ratio!r}): expected a number above 0, such as 0.001.")
    if not isinstance(weight_decay, numbers.Real) or not 0 <= float(weight_decay) < math.inf:
        raise ValueError(f"lars(weight_decay={weight_decay!r}): expected a number from 0, such as 0.0001.")


def is_adapted(variable: tf.Variable) -> bool:
    """Whether LARS scales the gradient of a variable: not of biases and the variables of normalisation.

    Example:
      >>> with tf.Graph().as_default():
      ...     names = ['conv/weights', 'conv/biases', 'BatchNorm/scale', 'alphabeta/w']
      ...     [is_adapted(tf.get_variable(name, [2, 2])) for name in names]
      [True, False, False, True]
    """
    return len(saved_shape(variable)) > 1 and not _PLAIN.search(saved_name(variable))


def lars_gradients(pairs: Sequence[tuple[Any, tf.Variable]], ratio: float, weight_decay: float) -> GradientPairs:
    """Returns the gradients scaled by LARS; see `LarsOptimizer`."""
    adapted = [
        (_decayable(gradient, variable, weight_decay), variable) for gradient, variable in pairs if is_adapted(variable)
    ]
    variables = [variable for _, variable in adapted]
    gradient_norms = whole_norms([gradient for gradient, _ in adapted], variables)
    weight_norms = whole_norms([variable.read_value() for variable in variables], variables)
    scaled: dict[Any, Any] = {}
    for (gradient, variable), of_gradient, of_weights in zip(adapted, gradient_norms, weight_norms, strict=True):
        below = of_gradient + weight_decay * of_weights
        local = tf.where(
            (of_weights > 0) & (below > 0), ratio * tf.math.divide_no_nan(of_weights, below), tf.ones_like(below)
        )
        with colocated_with(variable):
            if isinstance(gradient, tf.IndexedSlices):
                values = gradient.values * tf.cast(local, gradient.values.dtype)
                scaled[variable.ref()] = tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
            else:
                decayed = gradient + weight_decay * variable.read_value() if weight_decay else gradient
                scaled[variable.ref()] = decayed * tf.cast(local, decayed.dtype)
    return [(scaled.get(variable.ref(), gradient), variable) for gradient, variable in pairs]


def _decayable(gradient: Any, variable: tf.Variable, weight_decay: float) -> Any:
    """Makes a sparse gradient dense if weight decay will be added to it."""
    if not isinstance(gradient, tf.IndexedSlices) or not weight_decay:
        return gradient
    shape = tf.shape(variable, out_type=gradient.indices.dtype)
    return tf.scatter_nd(tf.expand_dims(gradient.indices, -1), gradient.values, shape)
