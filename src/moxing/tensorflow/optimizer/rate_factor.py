"""A factor of the learning rate that can be changed while training runs, for any optimizer and schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

#: Where optimizers keep what they were given as learning rate: TensorFlow's, and those here.
_RATES = ("_learning_rate", "_lr", "_rate")
#: Where optimizers keep the one that they wrap.
_INNER = ("_optimizer", "_opt")

#: Where they keep the tensor that they made of it when gradients were applied.
_PREPARED = {"_learning_rate": "_learning_rate_tensor", "_lr": "_lr_t", "_rate": "_rate_tensor"}

NAME = "learning_rate_factor"


def rate_factor(name: str = NAME) -> tf.Variable:
    """A factor of the current graph, 1 at first; its value is also a summary.

    Args:
      name: of the variable, and the tag of the summary.

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
        f"moxing/{name}",
        shape=[],
        initializer=tf.ones_initializer(),
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
        use_resource=True,
    )
    # tf.summary.scalar would make the tag from a name that is still free in the graph.
    tf.add_to_collection(tf.GraphKeys.SUMMARIES, tf.raw_ops.ScalarSummary(tags=name, values=factor.read_value()))
    return factor


def with_factor(optimizer_fn: Callable[..., Any], factor: tf.Variable) -> Callable[[], Any]:
    """An `optimizer_fn` whose optimizer has the learning rate of the given one, times `factor`."""

    def scaled() -> Any:
        optimizer = optimizer_fn()
        if not _scale(optimizer, factor):
            raise NotImplementedError(
                f"The optimizer {type(optimizer).__name__} does not keep its learning rate where TensorFlow's do "
                f"({' or '.join(_RATES[:2])}), so that no hook can lower it."
            )
        return optimizer

    return scaled


def _scale(optimizer: Any, factor: tf.Variable) -> bool:
    for attribute in _RATES:
        rate = getattr(optimizer, attribute, None)
        if rate is not None:
            given = _tensor(rate)
            setattr(optimizer, attribute, given * tf.cast(factor.read_value(), given.dtype))
            return True
    inner = [getattr(optimizer, attribute, None) for attribute in _INNER]
    return any(_scale(wrapped, factor) for wrapped in inner if wrapped is not None)


def rate_given(optimizer: Any) -> Any:
    """What an optimizer, or the one that it wraps, was given as learning rate; None where it is not known.

    Example:
      >>> with tf.Graph().as_default():
      ...     rate_given(tf.train.AdamOptimizer(0.5))
      0.5
    """
    for attribute in _RATES:
        if getattr(optimizer, attribute, None) is not None:
            return getattr(optimizer, attribute)
    inner = [getattr(optimizer, attribute, None) for attribute in _INNER]
    return next((rate for wrapped in inner if wrapped is not None and (rate := rate_given(wrapped)) is not None), None)


def rate_of(optimizer: Any) -> tf.Tensor | None:
    """The learning rate of an optimizer whose gradients were applied; None where it is not known.

    It is the very tensor of the updates, where that stands in the current graph and not in a branch of `tf.cond`.

    Example:
      >>> with tf.Graph().as_default():
      ...     optimizer = tf.train.MomentumOptimizer(lambda: 0.5, 0.9)
      ...     train = optimizer.minimize(tf.get_variable('w', initializer=1.0, use_resource=True))
      ...     print(tf.get_static_value(rate_of(optimizer)))
      0.5
    """
    for attribute, prepared in _PREPARED.items():
        rate = getattr(optimizer, attribute, None)
        if rate is None:
            continue
        used = getattr(optimizer, prepared, None)
        if isinstance(used, tf.Tensor) and used.graph is tf.get_default_graph():
            return used
        try:
            tensor = _tensor(rate)
        except (TypeError, ValueError):  # an optimizer of the user's, for whom the name means something else
            return None
        return tensor if tensor.shape.rank == 0 and tensor.dtype.is_floating else None
    inner = [getattr(optimizer, attribute, None) for attribute in _INNER]
    return next((rate for wrapped in inner if wrapped is not None and (rate := rate_of(wrapped)) is not None), None)


def _tensor(rate: Any) -> tf.Tensor:
    return tf.convert_to_tensor(rate() if callable(rate) and not isinstance(rate, tf.Variable) else rate)
