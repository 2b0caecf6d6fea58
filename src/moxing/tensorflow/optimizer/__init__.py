"""Optimizers and learning-rate schedules; optimizers that wrap others are in `wrappers`.

`get_optimizer_fn` and `get_optimizer_wrapper_fn` build them by name; `register_optimizer` and
`register_optimizer_wrapper` add names. `step_context` is what a strategy says about the step that is being built.
Import from here only what `__all__` lists; the schedules are in `learning_rate_scheduler`.
"""

from moxing.tensorflow.optimizer.factory import OptimizerKeys, get_optimizer_fn, register_optimizer
from moxing.tensorflow.optimizer.wrappers.factory import get_optimizer_wrapper_fn, register_optimizer_wrapper
from moxing.tensorflow.optimizer.wrappers.wrapper import OptimizerWrapper

__all__ = [
    "OptimizerKeys",
    "OptimizerWrapper",
    "get_optimizer_fn",
    "get_optimizer_wrapper_fn",
    "register_optimizer",
    "register_optimizer_wrapper",
]
