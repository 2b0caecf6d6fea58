"""`mox.get_optimizer_wrapper_fn`: optimizer wrappers by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import nearest
from moxing.tensorflow.optimizer.workers import warn_of_sync_replicas
from moxing.tensorflow.optimizer.wrappers.batch_gradients import BatchGradientsOptimizer
from moxing.tensorflow.optimizer.wrappers.dgc import DgcOptimizer
from moxing.tensorflow.optimizer.wrappers.easgd import EasgdOptimizer
from moxing.tensorflow.optimizer.wrappers.ema import EmaOptimizer
from moxing.tensorflow.optimizer.wrappers.lars import LarsOptimizer
from moxing.tensorflow.optimizer.wrappers.lookahead import LookaheadOptimizer
from moxing.tensorflow.optimizer.wrappers.wrapper import (
    OptimizerWrapper,
    check_combination,
    trains_worker_copies,
    unwrap,
)

WrapperClass = TypeVar("WrapperClass", bound=type[OptimizerWrapper])

#: The wrappers of MoXing by name. A new wrapper is one file and one line here.
WRAPPERS: dict[str, type[OptimizerWrapper]] = {
    "batch_gradients": BatchGradientsOptimizer,
    "dgc": DgcOptimizer,
    "easgd": EasgdOptimizer,
    "ema": EmaOptimizer,
    "lars": LarsOptimizer,
    "lookahead": LookaheadOptimizer,
}

#: Wrappers of scripts, by name.
_registered: dict[str, type[OptimizerWrapper]] = {}


def register_optimizer_wrapper(name: str) -> Callable[[WrapperClass], WrapperClass]:
    """A class decorator that makes a subclass of `OptimizerWrapper` known to `mox.get_optimizer_wrapper_fn`.

    Args:
      name: its name, in lower case. Registering a name again replaces the wrapper.

    Raises:
      ValueError: MoXing has a wrapper of that name, or the name is not in lower case.
      TypeError: the class is no subclass of `OptimizerWrapper`.

    Example:
      >>> @register_optimizer_wrapper('sign')
      ... class SignOptimizer(OptimizerWrapper):
      ...     def __init__(self, optimizer, name='Sign'):
      ...         super().__init__(optimizer, name)
      ...     def _apply(self, pairs):
      ...         return self.wrapped.apply_gradients([(tf.sign(gradient), variable) for gradient, variable in pairs])
      >>> with tf.Graph().as_default():
      ...     get_optimizer_wrapper_fn('sign', tf.train.GradientDescentOptimizer(0.1))().get_name()
      'Sign'
    """
    if name in WRAPPERS:
        raise ValueError(
            f"register_optimizer_wrapper({name!r}): MoXing has a wrapper of this name; choose another one."
        )
    if name != name.lower() or not name:
        raise ValueError(f"register_optimizer_wrapper({name!r}): expected a name in lower case.")

    def register(wrapper_class: WrapperClass) -> WrapperClass:
        if not isinstance(wrapper_class, type) or not issubclass(wrapper_class, OptimizerWrapper):
            raise TypeError(
                f"register_optimizer_wrapper({name!r}): expected a subclass of OptimizerWrapper, got {wrapper_class!r}."
            )
        _registered[name] = wrapper_class
        return wrapper_class

    return register


def get_optimizer_wrapper_fn(name: str, opt: Any, **kwargs: Any) -> Callable[[], OptimizerWrapper]:
    """Returns a function that builds an optimizer around another one. Wrappers can be wrapped again.

    Args:
      name: batch_gradients, dgc, easgd, ema, lars, lookahead, or a name of `register_optimizer_wrapper`.
      opt: an optimizer, or a function without arguments that returns one, such as `get_optimizer_fn` returns.
      **kwargs: the wrapper's arguments: `num_batches=`, `sync_on_apply=` of batch_gradients; `ratio=`, `weight_decay=`
        of lars; `period=`, `moving_rate=` of easgd; `k=`, `alpha=` of lookahead; `decay=`, `warm_up=` of ema; those of
        `DgcOptimizer`.

    Example:
      >>> from moxing.tensorflow.optimizer import get_optimizer_fn
      >>> optimizer_fn = get_optimizer_fn('momentum', learning_rate=0.1)
      >>> optimizer_fn = get_optimizer_wrapper_fn('lars', optimizer_fn, ratio=0.001, weight_decay=0.0001)
      >>> optimizer_fn = get_optimizer_wrapper_fn('batch_gradients', optimizer_fn, num_batches=8)
      >>> with tf.Graph().as_default():
      ...     optimizer_fn().get_name()
      'BatchGradients'
    """
    wrappers = {**WRAPPERS, **_registered}
    key = str(name).lower()
    if key not in wrappers:
        near = nearest(key, list(wrappers), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"get_optimizer_wrapper_fn(name={name!r}): expected one of {', '.join(wrappers)}.{hint}")
    wrapper_class = wrappers[key]
    if not isinstance(opt, tf.train.Optimizer) and not callable(opt):
        raise TypeError(
            f"get_optimizer_wrapper_fn({key!r}, {opt!r}): expected an optimizer, or a function that returns one."
        )
    try:
        inspect.signature(wrapper_class).bind(opt, **kwargs)
    except TypeError as error:
        _, *accepted = inspect.signature(wrapper_class).parameters
        raise TypeError(
            f"get_optimizer_wrapper_fn({key!r}, ...): {error}; the wrapper takes {', '.join(accepted)}."
        ) from None
    return _WrapperFn(key, wrapper_class, opt, kwargs)


@dataclass(frozen=True)
class _WrapperFn:
    """Builds a wrapper when it is called.

    Attributes:
      name: name of the wrapper, for errors.
      wrapper_class: the wrapper.
      opt: the optimizer inside, or a function that returns it.
      arguments: the wrapper's keyword arguments.
    """

    name: str
    wrapper_class: type[OptimizerWrapper]
    opt: Any
    arguments: Mapping[str, Any]

    @property
    def trains_worker_copies(self) -> bool:
        """Whether the optimizer will need variables of each worker's own; see `is_elastic`."""
        if self.wrapper_class.trains_worker_copies:
            return True
        if isinstance(self.opt, tf.train.Optimizer):
            return trains_worker_copies(self.opt)
        return bool(getattr(self.opt, "trains_worker_copies", False))

    def __call__(self) -> OptimizerWrapper:
        inner = self.opt if isinstance(self.opt, tf.train.Optimizer) else self.opt()
        if not isinstance(inner, tf.train.Optimizer):
            raise TypeError(
                f"get_optimizer_wrapper_fn({self.name!r}, opt=...): the function returned {inner!r}: expected a "
                "tf.train.Optimizer."
            )
        warn_of_sync_replicas()
        if not self.wrapper_class.repeatable and any(isinstance(each, self.wrapper_class) for each in unwrap(inner)):
            raise ValueError(
                f"get_optimizer_wrapper_fn({self.name!r}, ...): the optimizer inside is already wrapped in "
                f"{self.name}; wrap it once."
            )
        optimizer = self.wrapper_class(inner, **self.arguments)
        check_combination(optimizer)
        return optimizer
