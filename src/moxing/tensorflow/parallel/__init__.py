"""Strategies: where variables live and how gradients become updates.

One strategy a file: `local`, `replicated`, `parameter_server`, `collective` and `dgc` are registered under values of
`--variable_update` (`strategy.py`), `easgd` is chosen by the optimizer; `choice.py` picks one for a run. The other
files are parts that strategies share. To write a strategy, subclass `Strategy` and decorate it with
`register_strategy`: see `docs/extending.md`. What such a class needs is exported here. Importing this package registers
the built-in strategies.
"""

from moxing.tensorflow.parallel import collective, dgc, easgd, parameter_server, replicated
from moxing.tensorflow.parallel.choice import choose_strategy
from moxing.tensorflow.parallel.devices import device_function
from moxing.tensorflow.parallel.gradients import average_gradients, flatten
from moxing.tensorflow.parallel.local import Local
from moxing.tensorflow.parallel.loss_scale import make_loss_scale
from moxing.tensorflow.parallel.optimizers import apply_all, clip_and_apply, clip_gradients, make_optimizer
from moxing.tensorflow.parallel.strategy import Strategy, StrategyContext, register_strategy
from moxing.tensorflow.parallel.train_step import Tower, TrainSetup, TrainStep

__all__ = [
    "Local",
    "Strategy",
    "StrategyContext",
    "Tower",
    "TrainSetup",
    "TrainStep",
    "apply_all",
    "average_gradients",
    "choose_strategy",
    "clip_and_apply",
    "clip_gradients",
    "collective",
    "device_function",
    "dgc",
    "easgd",
    "flatten",
    "make_loss_scale",
    "make_optimizer",
    "parameter_server",
    "register_strategy",
    "replicated",
]
