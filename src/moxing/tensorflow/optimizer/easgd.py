"""Elastic averaging between workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.numbers_given import is_integer, is_number
from moxing.tensorflow.optimizer.dgc import DgcOptimizer
from moxing.tensorflow.optimizer.ema import EmaOptimizer
from moxing.tensorflow.optimizer.lookahead import LookaheadOptimizer
from moxing.tensorflow.optimizer.simple_sync_optimizer import SimpleSyncOptimizer
from moxing.tensorflow.optimizer.surroundings import chain, surroundings
from moxing.tensorflow.optimizer.whole_variables import beside
from moxing.tensorflow.optimizer.workers import task_device
from moxing.tensorflow.optimizer.wrapper import OWN_VARIABLES, GradientPairs, OptimizerWrapper, when, wide_type

#: An `optimizer_fn` with this attribute makes an optimizer that needs variables of the worker's own, before `model_fn`.
ELASTIC = "moxing_elastic"

#: What such a job is started with.
NEEDS = "parameter servers (--ps_hosts) and --sync_replicas=False"


class EasgdOptimizer(OptimizerWrapper):
    """EASGD: Zhang, Choromanska, LeCun, Deep learning with elastic averaging SGD, 2015; the asynchronous form.

    Every worker i trains variables x_i of its own with the optimizer inside. On the parameter servers is the centre c,
    one for all. Behind every `period` of its steps a worker does

        d = moving_rate * (x_i - c),  x_i = x_i - d,  c = c + d

    and in between it sends nothing but the count of steps. The centre is what is saved, evaluated, exported and gone on
    with: it has the names of the variables. A worker begins with the centre, also after a restart. Its variables and
    the slots of the optimizer inside (momentum...) are in its own memory and in no checkpoint. What it did since its
    last exchange is in the centre only when it does the next one. With n workers n * moving_rate should be at most 1;
    the paper's is 0.9 / n.

    It is for jobs with parameter servers and `--sync_replicas=False`; others are an error. One process by itself has
    nobody to exchange with: there the optimizer inside trains the variables, with a warning.

    Args:
      optimizer: what is wrapped.
      period: how many steps a worker does between two exchanges.
      moving_rate: how far the worker and the centre move towards each other.
      name: of the operations.

    Example:
      >>> with tf.Graph().as_default():
      ...     optimizer = EasgdOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), period=4, moving_rate=0.25)
      ...     optimizer.get_name(), optimizer.wrapped.get_name()
      ('EASGD', 'Momentum')
    """

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
        self._centres: Mapping[Any, tf.Variable] | None = None
        self._alone = False

    def apply_gradients(
        self, grads_and_vars: Any, global_step: tf.Variable | None = None, name: str | None = None
    ) -> tf.Operation:
        """One step of this worker, and the exchange when it is due."""
        if self._centres is None and not self._alone:
            # Told while the step is built, and used also behind it, by `flush_op`.
            self._centres = surroundings().centres
            self._alone = self._centres is None
            if self._alone:
                _check_alone()
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        with _in_this_worker():
            super()._create_slots(var_list)

    def _create_own(self, variables: Sequence[tf.Variable]) -> None:
        self._count = self._create_non_slot_variable(
            tf.zeros([], tf.int64), OWN_VARIABLES + "easgd/steps", min(variables, key=lambda variable: variable.name)
        )

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        applied = self._optimizer.apply_gradients(pairs)
        if self._centres is None:
            return applied
        both = [(variable, self._centres[variable.ref()]) for _, variable in pairs]
        with tf.control_dependencies([applied]):
            count = tf.assign_add(self._count, 1)
        return when(tf.equal(count % self._period, 0), lambda: self._exchange(both))

    def _exchange(self, both: Sequence[tuple[tf.Variable, tf.Variable]]) -> tf.Operation:
        # All variables of a ps travel as one: also an exchange that is not due costs a message for what would travel.
        packs: dict[tuple[str, tf.DType], list[tuple[tf.Variable, tf.Variable]]] = {}
        for own, centre in both:
            packs.setdefault((centre.device, own.dtype.base_dtype), []).append((own, centre))
        return tf.group(*[self._exchange_pack(pack) for pack in packs.values()])

    def _exchange_pack(self, pack: Sequence[tuple[tf.Variable, tf.Variable]]) -> tf.Operation:
        copies, centres = [own for own, _ in pack], [centre for _, centre in pack]
        with beside(centres[0]):
            theirs = _flat(centres)
        with beside(copies[0]):
            wide = wide_type(copies[0])
            apart = tf.cast(_flat(copies), wide) - tf.cast(theirs, wide)
            change = tf.cast(self._rate * apart, copies[0].dtype.base_dtype)
            nearer = [own.assign_sub(part, read_value=False) for own, part in _parts(change, copies)]
        with beside(centres[0]):
            moved = [centre.assign_add(part, read_value=False) for centre, part in _parts(change, centres)]
        return tf.group(*nearer, *moved)


def _flat(variables: Sequence[tf.Variable]) -> tf.Tensor:
    values = [tf.reshape(variable.read_value(), [-1]) for variable in variables]
    return values[0] if len(values) == 1 else tf.concat(values, 0)


def _parts(values: tf.Tensor, variables: Sequence[tf.Variable]) -> list[tuple[tf.Variable, tf.Tensor]]:
    """The variables, each with what belongs to it, in its shape."""
    sizes = [variable.shape.num_elements() for variable in variables]
    parts = [values] if len(variables) == 1 else tf.split(values, sizes)
    return [(variable, tf.reshape(part, variable.shape)) for part, variable in zip(parts, variables, strict=True)]


def _in_this_worker() -> AbstractContextManager[None]:
    """Inside, new variables are in no checkpoint. They stand beside the worker's own anyway."""

    def create(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        given = arguments.get("collections") or [tf.GraphKeys.GLOBAL_VARIABLES]
        local = [key for key in given if key != tf.GraphKeys.GLOBAL_VARIABLES]
        arguments["collections"] = list(dict.fromkeys([*local, tf.GraphKeys.LOCAL_VARIABLES]))
        return create(**arguments)

    return tf.variable_creator_scope(create)


def _check_alone() -> None:
    """Raises where the step is a worker's and its variables are not its own; else warns."""
    if task_device() is not None:
        raise ValueError(
            f"get_optimizer_wrapper_fn('easgd', ...) needs {NEEDS}. If the job has them: the variables of this worker "
            "were made without knowing of easgd, since optimizer_fn needs what model_fn builds, so that it could not "
            "be called before. Give mox.run(optimizer_fn=...) the function that get_optimizer_wrapper_fn returns."
        )
    tf.logging.warning(
        "easgd: this process is by itself and has no other to exchange with; the optimizer inside trains the variables."
    )


def is_elastic(optimizer_fns: Sequence[Callable[..., Any]], possible: bool = True) -> bool:
    """Whether the optimizers of a run need variables of each worker's own; all do, or none.

    Args:
      optimizer_fns: those of `mox.run`.
      possible: one that does not tell by itself is called, in a graph that is thrown away.

    Example:
      >>> from moxing.tensorflow.optimizer.wrappers import get_optimizer_wrapper_fn
      >>> def optimizer_fn():
      ...     return get_optimizer_wrapper_fn('easgd', tf.train.GradientDescentOptimizer(0.1))()
      >>> is_elastic([optimizer_fn]), is_elastic([lambda: tf.train.GradientDescentOptimizer(0.1)])
      (True, False)
    """
    elastic = [_makes_elastic(function, possible) for function in optimizer_fns]
    if any(elastic) and not all(elastic):
        raise ValueError(
            f"mox.run(optimizer_fn=[...]): number {elastic.index(False)} has no easgd and others have it: the "
            "variables of a worker are its own for all losses, or for none."
        )
    return any(elastic)


def _makes_elastic(optimizer_fn: Callable[..., Any], possible: bool) -> bool:
    told = getattr(optimizer_fn, ELASTIC, None)
    if told is not None or not possible:
        return bool(told)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        try:
            made = optimizer_fn()
        except Exception as error:
            # It may need what model_fn builds; if it makes easgd nevertheless, the first step tells.
            tf.logging.debug("optimizer_fn cannot be called before model_fn: %r", error)
            return False
    return any(isinstance(each, EasgdOptimizer) for each in chain(made))


#: Wrappers that make no sense with easgd, around it or inside, and why.
_AROUND = {
    LookaheadOptimizer: "its slow weights are the worker's own: put lookahead inside of easgd",
    EmaOptimizer: "averages of a worker's own variables would be in no checkpoint; the centre is an average already",
    DgcOptimizer: "nothing is sent that could be compressed",
    SimpleSyncOptimizer: "workers that apply together have no variables of their own (sync_on_apply=False)",
}
_INSIDE = {kind: why for kind, why in _AROUND.items() if kind is not LookaheadOptimizer}


def check_order(optimizer: Any) -> None:
    """Raises where wrappers around easgd, or inside of it, do not go together with it.

    Example:
      >>> with tf.Graph().as_default():
      ...     check_order(EmaOptimizer(EasgdOptimizer(tf.train.GradientDescentOptimizer(0.1))))
      Traceback (most recent call last):
      ValueError: ema around easgd: averages of a worker's own variables would be in no checkpoint; the centre is an \
average already.
    """
    optimizers = chain(optimizer)
    places = [place for place, each in enumerate(optimizers) if isinstance(each, EasgdOptimizer)]
    if not places:
        return
    if len(places) > 1:
        raise ValueError("easgd around easgd: a worker has one centre to exchange with.")
    sides = (("around", optimizers[: places[0]], _AROUND), ("inside of", optimizers[places[0] :], _INSIDE))
    for side, others, refused in sides:
        for other in others:
            for kind, why in refused.items():
                if isinstance(other, kind):
                    raise ValueError(f"{_NAMES[kind]} {side} easgd: {why}.")


_NAMES = {
    LookaheadOptimizer: "lookahead",
    EmaOptimizer: "ema",
    DgcOptimizer: "dgc",
    SimpleSyncOptimizer: "batch_gradients(sync_on_apply=True)",
}
