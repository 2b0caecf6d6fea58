"""`mox.get_optimizer_fn`: optimizers by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import nearest
from moxing.tensorflow.optimizer.adamw import AdamWOptimizer
from moxing.tensorflow.optimizer.lamb import LambOptimizer
from moxing.tensorflow.optimizer.nadam import NadamOptimizer


class OptimizerKeys(StrEnum):
    """The names that `get_optimizer_fn` knows."""

    ADADELTA = "adadelta"
    ADAGRAD = "adagrad"
    ADAM = "adam"
    ADAMW = "adamw"
    FTRL = "ftrl"
    LAMB = "lamb"
    MOMENTUM = "momentum"
    NADAM = "nadam"
    RMSPROP = "rmsprop"
    SGD = "sgd"


_OPTIMIZERS: dict[OptimizerKeys, Callable[..., tf.train.Optimizer]] = {
    OptimizerKeys.ADADELTA: tf.train.AdadeltaOptimizer,
    OptimizerKeys.ADAGRAD: tf.train.AdagradOptimizer,
    OptimizerKeys.ADAM: tf.train.AdamOptimizer,
    OptimizerKeys.ADAMW: AdamWOptimizer,
    OptimizerKeys.FTRL: tf.train.FtrlOptimizer,
    OptimizerKeys.LAMB: LambOptimizer,
    OptimizerKeys.MOMENTUM: tf.train.MomentumOptimizer,
    OptimizerKeys.NADAM: NadamOptimizer,
    OptimizerKeys.RMSPROP: tf.train.RMSPropOptimizer,
    OptimizerKeys.SGD: tf.train.GradientDescentOptimizer,
}


def get_optimizer_fn(
    name: str, learning_rate: Any, scope: str | None = None, *args: Any, **kwargs: Any
) -> Callable[[], tf.train.Optimizer]:
    """A function that builds an optimizer, to be passed to `mox.run(optimizer_fn=...)`.

    Args:
      name: one of `OptimizerKeys`: adadelta, adagrad, adam, ftrl, momentum, rmsprop, sgd, which are TensorFlow's;
        adamw, lamb, nadam, which are MoXing's.
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      scope: name scope of the operations that the optimizer adds, and of variables that it has beside its slots (Adam's
        `beta1_power`). Two optimizers of a kind get different names by it.
      *args: further positional arguments of the optimizer, after the learning rate.
      **kwargs: its keyword arguments, for example `momentum=0.9` or `beta1=0.5`.

    Example:
      >>> with tf.Graph().as_default():
      ...     get_optimizer_fn('momentum', learning_rate=0.01, momentum=0.9)().get_name()
      'Momentum'
    """
    key = _key(name)
    optimizer_class = _OPTIMIZERS[key]
    if isinstance(learning_rate, str):
        raise TypeError(
            f"get_optimizer_fn({key.value!r}, learning_rate={learning_rate!r}): expected a number, a tensor or a "
            "function that makes one; a strategy is for learning_rate_scheduler.piecewise_lr."
        )
    if key is OptimizerKeys.MOMENTUM and not args:
        kwargs.setdefault("momentum", 0.9)
    try:
        inspect.signature(optimizer_class).bind(learning_rate, *args, **kwargs)
    except TypeError as error:
        accepted = ", ".join(list(inspect.signature(optimizer_class).parameters))
        raise TypeError(f"get_optimizer_fn({key.value!r}, ...): {error}; the optimizer takes {accepted}.") from None

    def build() -> tf.train.Optimizer:
        rate = learning_rate() if callable(learning_rate) else learning_rate
        made = optimizer_class if scope is None else _in_scope(optimizer_class, scope)
        return made(rate, *args, **kwargs)

    return build


def _key(name: Any) -> OptimizerKeys:
    text = str(getattr(name, "value", name)).lower()
    known = [key.value for key in OptimizerKeys]
    if text not in known:
        near = nearest(text, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"get_optimizer_fn(name={name!r}): expected one of {', '.join(known)}.{hint}")
    return OptimizerKeys(text)


def _in_scope(optimizer_class: Any, scope: str) -> Any:
    """The optimizer with its operations, and variables beside the slots, in a name scope."""
    if not isinstance(scope, str) or not scope.strip("/"):
        raise ValueError(f"get_optimizer_fn(scope={scope!r}): expected a name.")

    class Scoped(optimizer_class):
        def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
            # Absolute, so that checkpoints do not depend on where the optimizer is applied.
            with tf.name_scope(scope.strip("/") + "/"):
                super()._create_slots(var_list)

        def apply_gradients(self, *args: Any, **kwargs: Any) -> tf.Operation:
            with tf.name_scope(scope.strip("/")):
                return super().apply_gradients(*args, **kwargs)

    return Scoped
