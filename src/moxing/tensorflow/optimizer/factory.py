"""`mox.get_optimizer_fn`: TensorFlow's optimizers by name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import tensorflow.compat.v1 as tf


class OptimizerKeys(StrEnum):
    """The names that `get_optimizer_fn` knows."""

    ADADELTA = "adadelta"
    ADAGRAD = "adagrad"
    ADAM = "adam"
    FTRL = "ftrl"
    MOMENTUM = "momentum"
    RMSPROP = "rmsprop"
    SGD = "sgd"


_OPTIMIZERS: dict[OptimizerKeys, Callable[..., tf.train.Optimizer]] = {
    OptimizerKeys.ADADELTA: tf.train.AdadeltaOptimizer,
    OptimizerKeys.ADAGRAD: tf.train.AdagradOptimizer,
    OptimizerKeys.ADAM: tf.train.AdamOptimizer,
    OptimizerKeys.FTRL: tf.train.FtrlOptimizer,
    OptimizerKeys.MOMENTUM: tf.train.MomentumOptimizer,
    OptimizerKeys.RMSPROP: tf.train.RMSPropOptimizer,
    OptimizerKeys.SGD: tf.train.GradientDescentOptimizer,
}


def get_optimizer_fn(
    name: str, learning_rate: Any, scope: str | None = None, *args: Any, **kwargs: Any
) -> Callable[[], tf.train.Optimizer]:
    """A function that builds an optimizer, to be passed to `mox.run(optimizer_fn=...)`.

    Args:
      name: one of `OptimizerKeys`: adadelta, adagrad, adam, ftrl, momentum, rmsprop, sgd.
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      scope: name scope of the operations the optimizer adds.
      *args: further positional arguments of TensorFlow's optimizer, after the learning rate.
      **kwargs: its keyword arguments, for example `momentum=0.9` or `beta1=0.5`.

    Example:
      >>> with tf.Graph().as_default():
      ...     get_optimizer_fn('momentum', learning_rate=0.01, momentum=0.9)().get_name()
      'Momentum'
    """
    try:
        key = OptimizerKeys(str(getattr(name, "value", name)).lower())
    except ValueError:
        known = [key.value for key in OptimizerKeys]
        near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"get_optimizer_fn(name={name!r}): expected one of {', '.join(known)}.{hint}") from None
    optimizer_class = _OPTIMIZERS[key]
    if key is OptimizerKeys.MOMENTUM and not args:
        kwargs.setdefault("momentum", 0.9)
    try:
        inspect.signature(optimizer_class).bind(learning_rate, *args, **kwargs)
    except TypeError as error:
        accepted = ", ".join(list(inspect.signature(optimizer_class).parameters))
        raise TypeError(f"get_optimizer_fn({key.value!r}, ...): {error}; the optimizer takes {accepted}.") from None

    def build() -> tf.train.Optimizer:
        rate = learning_rate() if callable(learning_rate) else learning_rate
        with tf.name_scope(scope) if scope else tf.name_scope(""):
            return optimizer_class(rate, *args, **kwargs)

    return build
