"""A factor of the learning rate that can be changed while training runs, for any optimizer and schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

#: Where optimizers keep what they were given as learning rate: TensorFlow's, and those here.
_RATES = ("_learning_rate", "_lr", "_rate")
#: Where optimizers keep the one that they wrap.
_INNER = ("_optimizer", "_opt")

NAME = "learning_rate_factor"


def rate_factor() -> tf.Variable:
    """The factor of the current graph, 1 at first; its value is also a summary.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     factor = rate_factor()
      ...     optimizer = with_factor(lambda: tf.train.GradientDescentOptimizer(0.5), factor)()
      ...     w = tf.get_variable('w', initializer=1.0, use_resource=True)
      ...     train = optimizer.minimize(w)
      ...     session.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
      ...     session.run(factor.assign(0.1).op)
      ...     session.run(train)
      ...     print(session.run(w))
      0.95
    """
    factor = tf.get_variable(
        f"moxing/{NAME}",
        shape=[],
        initializer=tf.ones_initializer(),
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
        use_resource=True,
    )
    # tf.summary.scalar would make the tag from a name that is still free in the graph.
    tf.add_to_collection(tf.GraphKeys.SUMMARIES, tf.raw_ops.ScalarSummary(tags=NAME, values=factor.read_value()))
    return factor


def with_factor(optimizer_fn: Callable[..., Any], factor: tf.Variable) -> Callable[[], Any]:
    """An `optimizer_fn` whose optimizer has the learning rate of the given one, times `factor`."""

    def scaled() -> Any:
        optimizer = optimizer_fn()
        if not _scale(optimizer, factor):
            raise NotImplementedError(
                f"The optimizer {type(optimizer).__name__} does not keep its learning rate where TensorFlow's do "
                f"({' or '.join(_RATES[:2])}), so that it cannot be lowered on a plateau: use mox.EarlyStoppingHook."
            )
        return optimizer

    return scaled


def _scale(optimizer: Any, factor: tf.Variable) -> bool:
    for attribute in _RATES:
        rate = getattr(optimizer, attribute, None)
        if rate is not None:
            given = tf.convert_to_tensor(rate() if callable(rate) and not isinstance(rate, tf.Variable) else rate)
            setattr(optimizer, attribute, given * tf.cast(factor.read_value(), given.dtype))
            return True
    inner = [getattr(optimizer, attribute, None) for attribute in _INNER]
    return any(_scale(wrapped, factor) for wrapped in inner if wrapped is not None)
