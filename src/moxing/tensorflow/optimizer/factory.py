"""`mox.get_optimizer_fn`: optimizers by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import nearest
from moxing.tensorflow.optimizer.adamw import AdamWOptimizer
from moxing.tensorflow.optimizer.lamb import LambOptimizer
from moxing.tensorflow.optimizer.nadam import NadamOptimizer

OptimizerClass = TypeVar("OptimizerClass", bound=Callable[..., Any])


class OptimizerKeys(StrEnum):
    """The optimizers of MoXing: the name, and the class. A new optimizer is one file and one line here.

    Attributes:
      optimizer_class: called with the learning rate first.

    Example:
      >>> OptimizerKeys.ADAMW, OptimizerKeys.ADAMW.optimizer_class.__name__
      (<OptimizerKeys.ADAMW: 'adamw'>, 'AdamWOptimizer')
    """

    optimizer_class: Callable[..., Any]

    def __new__(cls, name: str, optimizer_class: Any = None) -> OptimizerKeys:
        member = str.__new__(cls, name)
        member._value_, member.optimizer_class = name, optimizer_class
        return member

    ADADELTA = "adadelta", tf.train.AdadeltaOptimizer
    ADAGRAD = "adagrad", tf.train.AdagradOptimizer
    ADAM = "adam", tf.train.AdamOptimizer
    ADAMW = "adamw", AdamWOptimizer
    FTRL = "ftrl", tf.train.FtrlOptimizer
    LAMB = "lamb", LambOptimizer
    MOMENTUM = "momentum", tf.train.MomentumOptimizer
    NADAM = "nadam", NadamOptimizer
    RMSPROP = "rmsprop", tf.train.RMSPropOptimizer
    SGD = "sgd", tf.train.GradientDescentOptimizer


#: Optimizers of scripts, by name.
_registered: dict[str, Callable[..., Any]] = {}


def register_optimizer(name: str) -> Callable[[OptimizerClass], OptimizerClass]:
    """A class decorator that makes an optimizer known to `mox.get_optimizer_fn`.

    The class, or function, is called with the learning rate first and returns a `tf.train.Optimizer`.

    Args:
      name: its name, in lower case. Registering a name again replaces the optimizer.

    Raises:
      ValueError: MoXing has an optimizer of that name, or the name is not in lower case.

    Example:
      >>> @register_optimizer('half_sgd')
      ... class HalfSgd(tf.train.GradientDescentOptimizer):
      ...     def __init__(self, learning_rate, name='HalfSgd'):
      ...         super().__init__(learning_rate / 2, name=name)
      >>> get_optimizer_fn('half_sgd', learning_rate=0.5)().get_name()
      'HalfSgd'
    """
    if name in list(OptimizerKeys):
        raise ValueError(f"register_optimizer({name!r}): MoXing has an optimizer of this name; choose another one.")
    if name != name.lower() or not name:
        raise ValueError(f"register_optimizer({name!r}): expected a name in lower case.")

    def register(optimizer_class: OptimizerClass) -> OptimizerClass:
        _registered[name] = optimizer_class
        return optimizer_class

    return register


def get_optimizer_fn(
    name: str, learning_rate: Any, scope: str | None = None, *args: Any, **kwargs: Any
) -> Callable[[], tf.train.Optimizer]:
    """Returns a function that builds an optimizer, for `mox.run(optimizer_fn=...)`.

    Args:
      name: one of `OptimizerKeys` (adadelta, adagrad, adam, ftrl, momentum, rmsprop and sgd are TensorFlow's; adamw,
        lamb and nadam are MoXing's), or a name of `register_optimizer`.
      learning_rate: a number, a tensor, or a function without arguments that returns one.
      scope: name scope of the optimizer's operations and of its variables other than slots (such as Adam's
        `beta1_power`). It keeps two optimizers of the same kind apart.
      *args: further positional arguments of the optimizer, after the learning rate.
      **kwargs: keyword arguments of the optimizer, for example `momentum=0.9` or `beta1=0.5`.

    Example:
      >>> with tf.Graph().as_default():
      ...     get_optimizer_fn('momentum', learning_rate=0.01, momentum=0.9)().get_name()
      'Momentum'
    """
    key, optimizer_class = _optimizer(name)
    if isinstance(learning_rate, str):
        raise TypeError(
            f"get_optimizer_fn({key!r}, learning_rate={learning_rate!r}): expected a number, a tensor or a function "
            "that returns one; use learning_rate_scheduler.piecewise_lr for a strategy."
        )
    if key == OptimizerKeys.MOMENTUM and not args:
        kwargs.setdefault("momentum", 0.9)
    try:
        inspect.signature(optimizer_class).bind(learning_rate, *args, **kwargs)
    except TypeError as error:
        accepted = ", ".join(list(inspect.signature(optimizer_class).parameters))
        raise TypeError(f"get_optimizer_fn({key!r}, ...): {error}; the optimizer takes {accepted}.") from None

    def build() -> tf.train.Optimizer:
        rate = learning_rate() if callable(learning_rate) else learning_rate
        scoped_class = optimizer_class if scope is None else _in_scope(optimizer_class, scope)
        return scoped_class(rate, *args, **kwargs)

    return build


def _optimizer(name: Any) -> tuple[str, Callable[..., Any]]:
    """Returns the name as the registry has it, and the class."""
    classes = {**{key.value: key.optimizer_class for key in OptimizerKeys}, **_registered}
    text = str(getattr(name, "value", name)).lower()
    if text not in classes:
        near = nearest(text, list(classes), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"get_optimizer_fn(name={name!r}): expected one of {', '.join(classes)}.{hint}")
    return text, classes[text]


def _in_scope(optimizer_class: Any, scope: str) -> Any:
    """Returns a subclass whose operations, and variables other than slots, are in a name scope."""
    if not isinstance(scope, str) or not scope.strip("/"):
        raise ValueError(f"get_optimizer_fn(scope={scope!r}): expected a name.")

    class Scoped(optimizer_class):
        def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
            # Absolute: names in a checkpoint must not depend on where the optimizer is applied.
            with tf.name_scope(scope.strip("/") + "/"):
                super()._create_slots(var_list)

        def apply_gradients(self, *args: Any, **kwargs: Any) -> tf.Operation:
            with tf.name_scope(scope.strip("/")):
                return super().apply_gradients(*args, **kwargs)

    return Scoped
