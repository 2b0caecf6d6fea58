"""Elastic averaging between workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.number_checks import is_integer, is_number
from moxing.tensorflow.optimizer.step_context import current_context
from moxing.tensorflow.optimizer.whole_variables import colocated_with
from moxing.tensorflow.optimizer.workers import task_device
from moxing.tensorflow.optimizer.wrappers.wrapper import (
    OWN_VARIABLES,
    GradientPairs,
    OptimizerWrapper,
    trains_worker_copies,
    when,
    wide_type,
)

#: What a job with easgd must be started with.
NEEDS = "parameter servers (--ps_hosts) and --sync_replicas=False"


class EasgdOptimizer(OptimizerWrapper):
    """EASGD: Zhang, Choromanska, LeCun, Deep learning with elastic averaging SGD, 2015; the asynchronous form.

    Every worker i trains its own copies x_i of the variables with the optimizer inside. The parameter servers hold the
    center variables c. After every `period` steps a worker does

        d = moving_rate * (x_i - c),  x_i = x_i - d,  c = c + d

    and in between it sends only the step count. The center variables have the names of the variables: they are saved,
    evaluated, exported and resumed from. A worker starts from the center, also after a restart. Its copies and the
    slots of the optimizer inside (such as momentum) are in its own memory and in no checkpoint. Its progress reaches
    the center with the next exchange. With n workers n * moving_rate should be at most 1; the paper uses 0.9 / n.

    It needs a job with parameter servers and `--sync_replicas=False`; other jobs are an error. In a single process the
    optimizer inside trains the variables, with a warning.

    Args:
      optimizer: the optimizer inside.
      period: number of steps between two exchanges.
      moving_rate: how far the worker and the center move towards each other.
      name: name of the operations.

    Example:
      >>> with tf.Graph().as_default():
      ...     optimizer = EasgdOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), period=4, moving_rate=0.25)
      ...     optimizer.get_name(), optimizer.wrapped.get_name()
      ('EASGD', 'Momentum')
    """

    trains_worker_copies = True

    def __init__(
        self, optimizer: tf.train.Optimizer, period: int = 10, moving_rate: float = 0.1, name: str = "EASGD"
    ) -> None:
        if not is_integer(period, 1):
            raise ValueError(f"easgd(period={period!r}): expected an integer from 1.")
        if not is_number(moving_rate) or not 0 < float(moving_rate) <= 1:
            raise ValueError(f"easgd(moving_rate={moving_rate!r}): expected a number above 0, up to 1.")
        super().__init__(optimizer, name)
        self._period: int = int(period)
        self._rate: float = float(moving_rate)
        self._centers: Mapping[Any, tf.Variable] | None = None
        self._alone = False

    def apply_gradients(
        self, grads_and_vars: Any, global_step: tf.Variable | None = None, name: str | None = None
    ) -> tf.Operation:
        """Adds one step of this worker, and the exchange when it is due."""
        if self._centers is None and not self._alone:
            # Only known while the step is built; `flush_op` needs it later.
            self._centers = current_context().center_variables
            self._alone = self._centers is None
            if self._alone:
                _check_alone()
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        with _in_this_worker():
            super()._create_slots(var_list)

    def _create_variables(self, variables: Sequence[tf.Variable]) -> None:
        self._count = self._create_non_slot_variable(
            tf.zeros([], tf.int64), OWN_VARIABLES + "easgd/steps", min(variables, key=lambda variable: variable.name)
        )

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        applied = self._optimizer.apply_gradients(pairs)
        if self._centers is None:
            return applied
        both = [(variable, self._centers[variable.ref()]) for _, variable in pairs]
        with tf.control_dependencies([applied]):
            count = tf.assign_add(self._count, 1)
        return when(tf.equal(count % self._period, 0), lambda: self._exchange(both))

    def _exchange(self, both: Sequence[tuple[tf.Variable, tf.Variable]]) -> tf.Operation:
        # All variables of a ps are sent as one tensor: even an exchange that is not due costs a message per tensor.
        packs: dict[tuple[str, tf.DType], list[tuple[tf.Variable, tf.Variable]]] = {}
        for own, center in both:
            packs.setdefault((center.device, own.dtype.base_dtype), []).append((own, center))
        return tf.group(*[self._exchange_pack(pack) for pack in packs.values()])

    def _exchange_pack(self, pack: Sequence[tuple[tf.Variable, tf.Variable]]) -> tf.Operation:
        copies, centers = [own for own, _ in pack], [center for _, center in pack]
        with colocated_with(centers[0]):
            theirs = _flat(centers)
        with colocated_with(copies[0]):
            wide = wide_type(copies[0])
            apart = tf.cast(_flat(copies), wide) - tf.cast(theirs, wide)
            change = tf.cast(self._rate * apart, copies[0].dtype.base_dtype)
            nearer = [own.assign_sub(part, read_value=False) for own, part in _parts(change, copies)]
        with colocated_with(centers[0]):
            moved = [center.assign_add(part, read_value=False) for center, part in _parts(change, centers)]
        return tf.group(*nearer, *moved)


def _flat(variables: Sequence[tf.Variable]) -> tf.Tensor:
    values = [tf.reshape(variable.read_value(), [-1]) for variable in variables]
    return values[0] if len(values) == 1 else tf.concat(values, 0)


def _parts(values: tf.Tensor, variables: Sequence[tf.Variable]) -> list[tuple[tf.Variable, tf.Tensor]]:
    """Splits `values` into one tensor per variable, in its shape."""
    sizes = [variable.shape.num_elements() for variable in variables]
    parts = [values] if len(variables) == 1 else tf.split(values, sizes)
    return [(variable, tf.reshape(part, variable.shape)) for part, variable in zip(parts, variables, strict=True)]


def _in_this_worker() -> AbstractContextManager[None]:
    """Makes new variables local, so that they are in no checkpoint."""

    def create(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        collections = arguments.get("collections") or [tf.GraphKeys.GLOBAL_VARIABLES]
        local = [key for key in collections if key != tf.GraphKeys.GLOBAL_VARIABLES]
        arguments["collections"] = list(dict.fromkeys([*local, tf.GraphKeys.LOCAL_VARIABLES]))
        return create(**arguments)

    return tf.variable_creator_scope(create)


def _check_alone() -> None:
    """Raises a ValueError for a worker without copies of its own; warns in a single process."""
    if task_device() is not None:
        raise ValueError(
            f"get_optimizer_wrapper_fn('easgd', ...) needs {NEEDS}. If the job has them: the variables of this worker "
            "were created without easgd, because optimizer_fn needs what model_fn builds and could not be called "
            "before it. Pass the function that get_optimizer_wrapper_fn returns to mox.run(optimizer_fn=...)."
        )
    tf.logging.warning(
        "easgd: this is a single process without workers to exchange with; only the optimizer inside is used."
    )


def is_elastic(optimizer_fns: Sequence[Callable[..., Any]], possible: bool = True) -> bool:
    """Whether the optimizers of a run train copies that are each worker's own; all must, or none.

    Args:
      optimizer_fns: those of `mox.run`.
      possible: true to call a function of the script, in a temporary graph, to find out.

    Example:
      >>> from moxing.tensorflow.optimizer.wrappers.factory import get_optimizer_wrapper_fn
      >>> def optimizer_fn():
      ...     return get_optimizer_wrapper_fn('easgd', tf.train.GradientDescentOptimizer(0.1))()
      >>> is_elastic([optimizer_fn]), is_elastic([lambda: tf.train.GradientDescentOptimizer(0.1)])
      (True, False)
    """
    elastic = [_makes_elastic(function, possible) for function in optimizer_fns]
    if any(elastic) and not all(elastic):
        raise ValueError(
            f"mox.run(optimizer_fn=[...]): number {elastic.index(False)} has no easgd and others have it; "
            "use easgd for all losses, or for none."
        )
    return any(elastic)


def _makes_elastic(optimizer_fn: Callable[..., Any], possible: bool) -> bool:
    known = getattr(optimizer_fn, "trains_worker_copies", None)
    if known is not None or not possible:
        return bool(known)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        try:
            optimizer = optimizer_fn()
        except Exception as error:
            # It may need what model_fn builds. If it returns easgd nevertheless, the first step raises an error.
            tf.logging.debug("optimizer_fn cannot be called before model_fn: %r", error)
            return False
    return trains_worker_copies(optimizer)
