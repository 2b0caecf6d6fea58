"""The base class of all strategies, and their names. `--variable_update` takes every name that is registered here.

A new strategy is one file with a decorated subclass, and one import of it in `parallel/__init__.py`. A script can
register strategies of its own in the same way. `choice.py` picks the one of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import Role
from moxing.tensorflow.cluster.ring import Ring
from moxing.tensorflow.optimizer.step_context import StepContext, step_context
from moxing.tensorflow.optimizer.wrappers.wrapper import OptimizerWrapper, need_step_weight
from moxing.tensorflow.parallel.gradients import (
    GradientPairs,
    loss_gradients,
    trainable_variables,
    variables_in_scopes,
)
from moxing.tensorflow.parallel.loss_scale import LossScale
from moxing.tensorflow.parallel.train_step import Tower, TrainSetup, TrainStep
from moxing.tf1.graph.towers import CopyVariable, ReplaceVariable, Towers

#: Connects all workers to a ring; returns None if that is not possible.
ConnectRing = Callable[[], Ring | None]


def no_ring() -> None:
    """A `ConnectRing` for workers that are connected by nothing but TensorFlow's servers."""


@dataclass(frozen=True)
class StrategyContext:
    """What a strategy is created from, see `Strategy.create`.

    Attributes:
      name: the registered name that was asked for.
      devices: the devices of this process, one for every tower.
      role: the role of this process in the job.
      run: number of the run in this process; the same on all workers.
      connect_ring: connects all workers to a ring for all-reduce.
    """

    name: str
    devices: Sequence[str]
    role: Role = Role()
    run: int = 0
    connect_ring: ConnectRing = no_ring


class Strategy:
    """Where variables live, and how the gradients of the towers become updates.

    A subclass implements `tower_device` and `train_op`.

    Args:
      devices: the devices of this process, one for every tower.
      copy: creates the variables of every tower after the first. None: all towers share those of the first.

    Attributes:
      num_workers: number of worker processes.
      worker_index: index of this worker. Worker 0 is the chief: it alone writes checkpoints.
      synchronous: all workers do every step together.
    """

    num_workers = 1
    worker_index = 0
    synchronous = False

    def __init__(self, devices: Sequence[str], copy: CopyVariable | None = None) -> None:
        self.devices = list(devices)
        self._towers = Towers(copy)

    @classmethod
    def create(cls, context: StrategyContext) -> Strategy:
        """Creates the strategy for a run. Raises `FlagError` where the flags do not fit it."""
        return cls(context.devices)

    @property
    def num_towers(self) -> int:
        """Number of towers of this process."""
        return len(self.devices)

    @property
    def is_chief(self) -> bool:
        """True for the one process that restores, saves and exports."""
        return self.worker_index == 0

    @property
    def owns_variables(self) -> bool:
        """True if this process initializes the variables."""
        return True

    #: A context in which the whole graph of the run is built.
    scope: Callable[..., AbstractContextManager[None]] = staticmethod(nullcontext)
    #: A context in which everything, variables included, is placed in this process.
    local_device: Callable[..., AbstractContextManager[None]] = staticmethod(nullcontext)
    #: Maps the variables that are saved to those that the towers compute with.
    tower_variables: Callable[..., list[tf.Variable]] = staticmethod(list)
    #: Operations to run after the variables have their values, before the first step.
    sync_ops: Callable[[], list[tf.Operation]] = staticmethod(list)
    #: Operations that every worker runs after the chief's variables are ready, before its first step.
    worker_sync_ops: Callable[[], list[tf.Operation]] = staticmethod(list)
    #: Adds what the strategy needs to the session's configuration.
    configure: Callable[[tf.ConfigProto], None] = staticmethod(lambda config: None)

    @contextmanager
    def tower_scope(self, index: int) -> Iterator[None]:
        """In this context `model_fn` builds tower `index`. Towers are built in order."""
        with tf.device(self.tower_device(index)), self._towers.build(index):
            yield

    @contextmanager
    def evaluation_scope(self, scope: str, instead: ReplaceVariable) -> Iterator[list[tf.Variable]]:
        """In this context `model_fn` builds a model in another mode, on the trained variables."""
        with tf.device(self.tower_device(0)), self._towers.build_in_other_mode(scope, instead) as own:
            yield own

    def tower_device(self, index: int) -> Callable[[tf.Operation], str]:
        """A device function for the operations of tower `index` and the variables that they use."""
        raise NotImplementedError

    def tower_gradients(
        self,
        towers: Sequence[Tower],
        optimizers: Sequence[Any],
        scale: LossScale | None,
        shares: Sequence[Any],
        spread: bool,
    ) -> list[list[GradientPairs]]:
        """The gradients of every tower and loss, each multiplied by its tower's share; see `loss_gradients`."""
        variables = trainable_variables()
        gradients = []
        for index, (tower, share) in enumerate(zip(towers, shares, strict=True)):
            with tf.device(self.tower_device(index)):
                of_losses = []
                for optimizer, loss, scopes in zip(optimizers, tower.losses, tower.var_scopes, strict=True):
                    own = self.tower_variables(variables_in_scopes(variables, scopes))
                    of_losses.append(loss_gradients(optimizer, loss, own, scale, spread, share))
                gradients.append(of_losses)
        return gradients

    @staticmethod
    def step_samples(towers: Sequence[Tower], optimizers: Sequence[Any]) -> tf.Tensor | None:
        """Number of samples of all towers. None if it is always the same, or if no optimizer needs it."""
        wrappers = [optimizer for optimizer in optimizers if isinstance(optimizer, OptimizerWrapper)]
        counts = [tower.weight if tower.samples is None else tower.samples for tower in towers]
        if not wrappers or not need_step_weight(wrappers) or any(count is None for count in counts):
            return None
        if all(tf.get_static_value(count) is not None for count in counts):
            return None
        return tf.add_n([tf.cast(count, tf.float64) for count in counts])

    def step_weight(
        self, samples: tf.Tensor | None, batch_size: int | None, workers: int = 1
    ) -> AbstractContextManager[StepContext | None]:
        """Sets the weight of the step for the optimizers that are applied inside, see `StepContext`.

        Args:
          samples: samples of the step; None: all steps have the same number.
          batch_size: samples of a full batch of one tower.
          workers: number of workers that the samples come from.
        """
        if samples is None:
            return nullcontext()
        full = (batch_size or 1) * self.num_towers * workers
        return step_context(weight=tf.cast(samples, tf.float64) / float(full))

    def train_op(self, setup: TrainSetup) -> TrainStep:
        """Builds one step: all gradients, then all updates, then `global_step` once."""
        raise NotImplementedError

    def request_stop(self, session: tf.Session, why: int) -> None:
        """Asks all workers to stop after the same step.

        Args:
          session: the session of the run.
          why: the value that `TrainStep.halt` gets: `HOOK` or `SIGNAL`.
        """

    def propose(self, session: tf.Session, steps: int) -> None:
        """Sets the value that `TrainStep.next_steps` gets; only the chief's counts."""


_Class = TypeVar("_Class", bound=type[Strategy])

_on_one_machine: dict[str, type[Strategy]] = {}
_in_cluster: dict[str, type[Strategy]] = {}


def register_strategy(*names: str, cluster: bool) -> Callable[[_Class], _Class]:
    """Registers a `Strategy` under one or more values of `--variable_update`.

    Args:
      names: values of `--variable_update`.
      cluster: True: for jobs of several processes. False: for one process with one or more devices. A name can be
        registered once for each.

    Example:
      >>> from moxing.tensorflow.parallel import Local
      >>> @register_strategy('on_my_devices', cluster=False)
      ... class OnMyDevices(Local):
      ...     '''Inherits everything.'''
      >>> find_strategy('on_my_devices', cluster=False).__name__
      'OnMyDevices'
    """

    def register(strategy: _Class) -> _Class:
        registered = _in_cluster if cluster else _on_one_machine
        for name in names:
            registered[name] = strategy
            FLAGS.add_choice("variable_update", name)
        return strategy

    return register


def find_strategy(name: str, cluster: bool) -> type[Strategy] | None:
    """Returns the strategy registered under `name`, or None.

    Example:
      >>> print(find_strategy('replicated', cluster=True))
      None
    """
    return (_in_cluster if cluster else _on_one_machine).get(name)
