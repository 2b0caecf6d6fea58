"""The learning rate in use, and a factor on it that hooks can change, for any optimizer and schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

#: Attributes with the learning rate that was passed to an optimizer, of TensorFlow or of MoXing.
_RATES = ("_learning_rate", "_lr", "_rate")
#: Attributes with the optimizer inside.
_INNER = ("_optimizer", "_opt")

#: Attributes with the tensor of the learning rate, after gradients were applied.
_PREPARED = {"_learning_rate": "_learning_rate_tensor", "_lr": "_lr_t", "_rate": "_rate_tensor"}

NAME = "learning_rate_factor"
#: Tag of the learning rate in summaries and in the progress bar.
TAG = "learning_rate"


def rate_factor(name: str = NAME) -> tf.Variable:
    """Creates a factor in the current graph, initially 1, and a summary of it.

    Args:
      name: name of the variable and tag of the summary.

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
    """Returns an `optimizer_fn` whose learning rate is multiplied by `factor`."""

    def scaled() -> Any:
        optimizer = optimizer_fn()
        if not _scale(optimizer, factor):
            raise NotImplementedError(
                f"{type(optimizer).__name__}: cannot change the learning rate, because the optimizer has none of the "
                f"attributes {', '.join(_RATES[:2])}. Remove the hook that lowers it, or add one of them."
            )
        return optimizer

    return scaled


def _scale(optimizer: Any, factor: tf.Variable) -> bool:
    for attribute in _RATES:
        rate = getattr(optimizer, attribute, None)
        if rate is not None:
            tensor = _tensor(rate)
            setattr(optimizer, attribute, tensor * tf.cast(factor.read_value(), tensor.dtype))
            return True
    inner = [getattr(optimizer, attribute, None) for attribute in _INNER]
    return any(_scale(wrapped, factor) for wrapped in inner if wrapped is not None)


def rate_given(optimizer: Any) -> Any:
    """Returns the learning rate that was passed to an optimizer, or to the one inside; None if unknown.

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
    """Returns the learning rate of an optimizer whose gradients were applied; None if unknown.

    It is the tensor of the updates themselves, if that is in the current graph and not in a branch of `tf.cond`.

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
        except (TypeError, ValueError):  # in an optimizer of a script the attribute may mean something else
            return None
        return tensor if tensor.shape.rank == 0 and tensor.dtype.is_floating else None
    inner = [getattr(optimizer, attribute, None) for attribute in _INNER]
    return next((rate for wrapped in inner if wrapped is not None and (rate := rate_of(wrapped)) is not None), None)


def learning_rates(optimizers: Sequence[Any]) -> dict[str, tf.Tensor]:
    """The rates of optimizers whose gradients were applied, by tag; equal ones once.

    Args:
      optimizers: one for every loss.

    Example:
      >>> with tf.Graph().as_default():
      ...     rates = learning_rates([tf.train.GradientDescentOptimizer(rate) for rate in (0.5, 0.5, 0.25)])
      ...     print({tag: tf.get_static_value(rate).item() for tag, rate in rates.items()})
      {'learning_rate': 0.5, 'learning_rate_1': 0.25}
    """
    rates: list[tf.Tensor] = []
    with tf.name_scope("moxing/learning_rate"):
        for optimizer in optimizers:
            rate = rate_of(optimizer)
            if rate is not None and not any(_equal(rate, other) for other in rates):
                rates.append(rate)
    return {TAG if not number else f"{TAG}_{number}": rate for number, rate in enumerate(rates)}


def _equal(one: tf.Tensor, other: tf.Tensor) -> bool:
    if one is other:
        return True
    values = [tf.get_static_value(tensor) for tensor in (one, other)]
    return values[0] is not None and values[0] == values[1]


def _tensor(rate: Any) -> tf.Tensor:
    return tf.convert_to_tensor(rate() if callable(rate) and not isinstance(rate, tf.Variable) else rate)
