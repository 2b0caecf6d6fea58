"""`mox.get_optimizer_wrapper_fn`: optimizer wrappers by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import nearest
from moxing.tensorflow.optimizer.batch_gradients import BatchGradientsOptimizer
from moxing.tensorflow.optimizer.dgc import DgcOptimizer
from moxing.tensorflow.optimizer.easgd import ELASTIC, EasgdOptimizer, check_order
from moxing.tensorflow.optimizer.ema import EmaOptimizer
from moxing.tensorflow.optimizer.lars import LarsOptimizer
from moxing.tensorflow.optimizer.lookahead import LookaheadOptimizer
from moxing.tensorflow.optimizer.surroundings import chain
from moxing.tensorflow.optimizer.workers import warn_of_sync_replicas
from moxing.tensorflow.optimizer.wrapper import OptimizerWrapper

#: The wrappers by name; each takes the optimizer first, then its own arguments.
WRAPPERS: dict[str, Callable[..., OptimizerWrapper]] = {
    "batch_gradients": BatchGradientsOptimizer,
    "dgc": DgcOptimizer,
    "easgd": EasgdOptimizer,
    "ema": EmaOptimizer,
    "lars": LarsOptimizer,
    "lookahead": LookaheadOptimizer,
}

#: Those of which two would mean nothing.
_ONCE = (DgcOptimizer, EmaOptimizer, LarsOptimizer)


def get_optimizer_wrapper_fn(name: str, opt: Any, **kwargs: Any) -> Callable[[], OptimizerWrapper]:
    """A function that builds an optimizer around another one. Wrappers can be wrapped again.

    Args:
      name: batch_gradients, dgc, easgd, ema, lars or lookahead.
      opt: an optimizer, or a function without arguments that returns one, such as `get_optimizer_fn` gives.
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
    key = str(name).lower()
    if key not in WRAPPERS:
        near = nearest(key, list(WRAPPERS), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        known = ", ".join(WRAPPERS)
        raise ValueError(f"get_optimizer_wrapper_fn(name={name!r}): expected one of {known}.{hint}")
    wrapper = WRAPPERS[key]
    if not isinstance(opt, tf.train.Optimizer) and not callable(opt):
        raise TypeError(
            f"get_optimizer_wrapper_fn({key!r}, {opt!r}): expected an optimizer, or a function that returns one."
        )
    try:
        inspect.signature(wrapper).bind(opt, **kwargs)
    except TypeError as error:
        _, *accepted = inspect.signature(wrapper).parameters
        raise TypeError(
            f"get_optimizer_wrapper_fn({key!r}, ...): {error}; the wrapper takes {', '.join(accepted)}."
        ) from None

    def build() -> OptimizerWrapper:
        inner = opt if isinstance(opt, tf.train.Optimizer) else opt()
        if not isinstance(inner, tf.train.Optimizer):
            raise TypeError(
                f"get_optimizer_wrapper_fn({key!r}, opt=...): the function returned {inner!r}: expected a "
                "tf.train.Optimizer."
            )
        warn_of_sync_replicas()
        if wrapper in _ONCE and any(isinstance(each, wrapper) for each in chain(inner)):
            raise ValueError(f"get_optimizer_wrapper_fn({key!r}, ...): {key} is inside already; once is enough.")
        made = wrapper(inner, **kwargs)
        check_order(made)
        return made

    # Where variables live is decided before the optimizer is made: the function tells what it will be.
    inside = any(isinstance(each, EasgdOptimizer) for each in chain(opt)) or bool(getattr(opt, ELASTIC, False))
    setattr(build, ELASTIC, wrapper is EasgdOptimizer or inside)
    return build
