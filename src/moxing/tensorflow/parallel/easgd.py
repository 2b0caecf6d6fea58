"""Elastic averaging (EASGD): every worker trains copies of the variables; the ps hold the center that they share.

The center variables have the names of the model's variables. They are global: the chief initializes, saves and restores
them, and hooks and evaluations see them. The model computes with copies in the worker's memory: local variables that
start with the center's values. The optimizer exchanges copies and center, see
`moxing.tensorflow.optimizer.wrappers.easgd`. Everything else, such as moving averages of batch normalization, is on the
ps and shared, as without elastic averaging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.step_context import step_context
from moxing.tensorflow.optimizer.wrappers.easgd import EasgdOptimizer
from moxing.tensorflow.optimizer.wrappers.wrapper import check_combination, unwrap
from moxing.tensorflow.parallel.optimizers import make_optimizer
from moxing.tensorflow.parallel.parameter_server import ParameterServer
from moxing.tensorflow.parallel.strategy import Strategy, StrategyContext
from moxing.tensorflow.parallel.train_step import TrainSetup, TrainStep
from moxing.tf1.graph.towers import ReplaceVariable
from moxing.tf1.graph.variables import initialize_like, share_saved_name

_COPY = "easgd"


class Easgd(ParameterServer):
    """Copies of the trainable variables on every worker, their center on the ps. Arguments: `ParameterServer`.

    It is chosen by the optimizer, `get_optimizer_wrapper_fn('easgd', ...)`, and not by `--variable_update`.
    """

    def __init__(self, devices: Sequence[str], workers: int, index: int, run: int, servers: int) -> None:
        super().__init__(devices, workers, index, run, servers, synchronous=False)
        #: By `ref()` of the center: the worker's copy, and the initializer that the copy was created with.
        self._copies: dict[Any, tuple[tf.Variable, tf.Operation]] = {}
        self._copying = True
        # One tower has its copies on its own device; several towers share copies in the memory of the host.
        self._device = f"{self.task}{self.devices[0] if self.num_towers == 1 else '/cpu:0'}"

    @classmethod
    def create(cls, context: StrategyContext) -> Strategy:
        role = context.role
        return cls(context.devices, role.num_workers, role.index, context.run, servers=len(role.ps))

    @contextmanager
    def evaluation_scope(self, scope: str, instead: ReplaceVariable) -> Iterator[list[tf.Variable]]:
        """In this context the model is that of the center."""
        self._copying = False
        try:
            with super().evaluation_scope(scope, instead) as own:
                yield own
        finally:
            self._copying = True

    def create_variable(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        collections = arguments.get("collections") or [tf.GraphKeys.GLOBAL_VARIABLES]
        if not self._copying or not _is_trainable(arguments) or tf.GraphKeys.GLOBAL_VARIABLES not in collections:
            return super().create_variable(create, **arguments)
        others = [key for key in collections if key != tf.GraphKeys.GLOBAL_VARIABLES]
        plain = {"trainable": False, "collections": [tf.GraphKeys.GLOBAL_VARIABLES]}
        center = create(**{**arguments, **plain})
        own = {
            "name": f"{center.op.name}/{_COPY}",
            "trainable": True,
            "collections": [*others, tf.GraphKeys.LOCAL_VARIABLES],
            "caching_device": None,
        }
        if center.shape.is_fully_defined():
            # worker_sync_ops sets the value. Zeros keep the graph small.
            own["initial_value"] = lambda: tf.zeros(center.shape, center.dtype.base_dtype)
        with tf.name_scope(None), tf.device(self._device):
            copied = create(**{**arguments, **own})
        self._copies.setdefault(center.ref(), (copied, copied.initializer))
        return copied

    def train_op(self, setup: TrainSetup) -> TrainStep:
        centers = {}
        for key, (copied, initializer) in self._copies.items():
            center = key.deref()
            share_saved_name(copied, center)
            if copied.initializer is not initializer:
                # tf.train.init_from_checkpoint replaced it: it saw the copy, the model's variable.
                initialize_like(center, copied)
            centers[copied.ref()] = center
        # From here on the collection holds the variables that are saved: hooks and name patterns refer to these.
        trainable = tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)
        trainable[:] = [centers.get(variable.ref(), variable) for variable in trainable]
        with step_context(center_variables=centers):
            functions = [_checked(function) for function in setup.optimizer_fns]
            return super().train_op(replace(setup, optimizer_fns=functions))

    def worker_sync_ops(self) -> list[tf.Operation]:
        """Copies the values of the center to the worker's copies."""
        return [tf.assign(copied, key.deref().read_value()).op for key, (copied, _) in self._copies.items()]

    def tower_variables(self, variables: Sequence[tf.Variable]) -> list[tf.Variable]:
        return [
            self._copies[variable.ref()][0] if variable.ref() in self._copies else variable for variable in variables
        ]


def _checked(optimizer_fn: Callable[..., Any]) -> Callable[[], Any]:
    """The function, with an error where the optimizer that it returns does not exchange with the center."""

    def make() -> Any:
        optimizer = make_optimizer(optimizer_fn)
        check_combination(optimizer)
        if not any(isinstance(each, EasgdOptimizer) for each in unwrap(optimizer)):
            raise ValueError(
                f"optimizer_fn returned {optimizer!r} without easgd, although the function is marked as having it: "
                "its updates would never reach the center."
            )
        return optimizer

    return make


def _is_trainable(arguments: dict[str, Any]) -> bool:
    """Whether the arguments of a variable creator make a trainable variable; the default is TensorFlow's."""
    if tf.GraphKeys.LOCAL_VARIABLES in (arguments.get("collections") or []):
        return False
    if arguments.get("trainable") is None:
        return bool(arguments.get("synchronization") != tf.VariableSynchronization.ON_READ)
    return bool(arguments["trainable"])
