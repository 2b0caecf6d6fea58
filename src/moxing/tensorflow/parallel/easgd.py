"""Elastic averaging: every worker trains variables of its own; the ps hold the centre, which they have in common.

The centre has the names of the variables. It is global: initialised by the chief, saved, restored, and what hooks and
an evaluation beside the training find. What the model computes with are copies in the memory of the worker, local
variables that begin with the centre's values. The exchange is the optimizer's: see
`moxing.tensorflow.optimizer.easgd`. All else, such as moving averages of batch normalisation, is on the ps and shared,
as without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.easgd import EasgdOptimizer, check_order
from moxing.tensorflow.optimizer.surroundings import chain, told
from moxing.tensorflow.parallel.optimizers import made
from moxing.tensorflow.parallel.parameter_server import ParameterServer
from moxing.tensorflow.parallel.strategy import Tower
from moxing.tf1.towers import Instead
from moxing.tf1.variables import begin_as, save_as

_COPY = "easgd"


class Easgd(ParameterServer):
    """Copies of what is trained on every worker, their centre on the ps. Arguments: `ParameterServer`."""

    def __init__(self, devices: Sequence[str], workers: int, index: int, run: int, servers: int) -> None:
        super().__init__(devices, workers, index, run, servers, in_step=False)
        #: By `ref()` of the centre: the worker's copy, and how that was to begin when it was made.
        self._copies: dict[Any, tuple[tf.Variable, tf.Operation]] = {}
        self._copying = True
        # Of one tower beside it; several share what is in the memory of the host.
        self._device = f"{self.task}{self.devices[0] if self.towers == 1 else '/cpu:0'}"

    @contextmanager
    def beside(self, scope: str, instead: Instead) -> Iterator[list[tf.Variable]]:
        """Inside, the model is that of the centre."""
        self._copying = False
        try:
            with super().beside(scope, instead) as own:
                yield own
        finally:
            self._copying = True

    def create(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        collections = arguments.get("collections") or [tf.GraphKeys.GLOBAL_VARIABLES]
        if not self._copying or not _is_trained(arguments) or tf.GraphKeys.GLOBAL_VARIABLES not in collections:
            return super().create(create, **arguments)
        others = [key for key in collections if key != tf.GraphKeys.GLOBAL_VARIABLES]
        plain = {"trainable": False, "collections": [tf.GraphKeys.GLOBAL_VARIABLES]}
        centre = create(**{**arguments, **plain})
        own = {
            "name": f"{centre.op.name}/{_COPY}",
            "trainable": True,
            "collections": [*others, tf.GraphKeys.LOCAL_VARIABLES],
            "caching_device": None,
        }
        if centre.shape.is_fully_defined():
            # It takes the centre's values: random numbers would only make the graph larger.
            own["initial_value"] = lambda: tf.zeros(centre.shape, centre.dtype.base_dtype)
        with tf.name_scope(None), tf.device(self._device):
            copied = create(**{**arguments, **own})
        self._copies.setdefault(centre.ref(), (copied, copied.initializer))
        return copied

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        centres = {}
        for key, (copied, initializer) in self._copies.items():
            centre = key.deref()
            save_as(copied, centre)
            if copied.initializer is not initializer:
                # By tf.train.init_from_checkpoint, which was given what the model has.
                begin_as(centre, copied)
            centres[copied.ref()] = centre
        # From here on the collection is of those that are saved: hooks look into it, and patterns are about its names.
        trainable = tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)
        trainable[:] = [centres.get(variable.ref(), variable) for variable in trainable]
        with told(centres=centres):
            return super().train_op(towers, [_elastic(function) for function in optimizer_fns], before, global_step)

    def own_values(self) -> list[tf.Operation]:
        """The copies take the values of the centre."""
        return [tf.assign(copied, key.deref().read_value()).op for key, (copied, _) in self._copies.items()]

    def trained_for(self, variables: Sequence[tf.Variable]) -> list[tf.Variable]:
        return [
            self._copies[variable.ref()][0] if variable.ref() in self._copies else variable for variable in variables
        ]


def _elastic(optimizer_fn: Callable[..., Any]) -> Callable[[], Any]:
    def checked() -> Any:
        optimizer = made(optimizer_fn)
        check_order(optimizer)
        if not any(isinstance(each, EasgdOptimizer) for each in chain(optimizer)):
            raise ValueError(
                f"optimizer_fn returned {optimizer!r} without easgd, and its function says that it has it: what it "
                "trained would never reach the centre."
            )
        return optimizer

    return checked


def _is_trained(arguments: dict[str, Any]) -> bool:
    """Whether a variable is one that optimizers change, where nothing is said: yes, unless it is read as a sum."""
    if tf.GraphKeys.LOCAL_VARIABLES in (arguments.get("collections") or []):
        return False
    if arguments.get("trainable") is None:
        return bool(arguments.get("synchronization") != tf.VariableSynchronization.ON_READ)
    return bool(arguments["trainable"])
