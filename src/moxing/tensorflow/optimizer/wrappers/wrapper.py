"""The base class of optimizer wrappers: an optimizer around another one, which does the updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.whole_variables import colocated_with

#: Prefix of the names of variables that belong to the wrapper, not to a variable of the model.
OWN_VARIABLES = "moxing/optimizer/"

GradientPairs = list[tuple[Any, tf.Variable]]


class OptimizerWrapper(tf.train.Optimizer):
    """An optimizer that changes the gradients before, or the weights after, the update of the one inside.

    A subclass implements `_apply`, and `_create_variables` if it has variables. Gradients are computed by
    the `compute_gradients` of the optimizer inside.

    Args:
      optimizer: the optimizer inside.
      name: name of the operations and slots.
    """

    #: True if the wrapper reads `StepContext.weight`, which costs operations in every step.
    needs_step_weight = False
    #: True if every worker trains copies of the variables that are its own; they are created before the optimizer is.
    trains_worker_copies = False
    #: False if a second wrapper of this class around the first makes no sense.
    repeatable = True

    def __new__(cls, optimizer: Any = None, *args: Any, **kwargs: Any) -> OptimizerWrapper:
        # Chosen with the class: strategies compare `compute_gradients` of the class with TensorFlow's to see whether
        # the optimizer changes gradients.
        plain = getattr(type(optimizer), "compute_gradients", None) is tf.train.Optimizer.compute_gradients
        instance: OptimizerWrapper = super().__new__(cls if plain else _computing_as_inner(cls))
        return instance

    def __init__(self, optimizer: tf.train.Optimizer, name: str) -> None:
        if not isinstance(optimizer, tf.train.Optimizer):
            raise TypeError(f"{type(self).__name__}({optimizer!r}): expected a tf.train.Optimizer.")
        super().__init__(use_locking=False, name=name)
        self._optimizer = optimizer

    @property
    def wrapped(self) -> tf.train.Optimizer:
        """The optimizer inside."""
        return self._optimizer

    def apply_gradients(
        self, grads_and_vars: Any, global_step: tf.Variable | None = None, name: str | None = None
    ) -> tf.Operation:
        """Adds one step: the wrapper's operations and the updates, then `global_step`."""
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        if not pairs:
            raise ValueError(f"{self.get_name()}: no gradients provided for any variable.")
        # Variables belong to the graph, even if the step is built in a branch of tf.cond, and keep their names.
        with tf.init_scope(), tf.name_scope(None):
            self._create_slots([variable for _, variable in pairs])
        with tf.name_scope(name, self.get_name()):
            done = self._apply(pairs)
            if global_step is None:
                return done
            with tf.control_dependencies([done]), colocated_with(global_step):
                return global_step.assign_add(tf.ones([], global_step.dtype.base_dtype), read_value=False)

    def easgd_conflict(self, side: str) -> str | None:
        """Why this wrapper cannot be combined with easgd; None if it can.

        Args:
          side: where this wrapper is: `around` or `inside of` easgd.
        """
        return None

    def flush_op(self) -> tf.Operation:
        """Returns the operation to run at the end of the data: it applies gradients that are not applied yet."""
        return flush_op([self._optimizer])

    def leave_op(self) -> tf.Operation:
        """Returns the operation to run when this worker leaves for any reason: nobody may wait for it."""
        return leave_op([self._optimizer])

    def get_slot(self, var: tf.Variable, name: str) -> Any:
        """Returns a slot of this wrapper, else of the optimizer inside."""
        own = super().get_slot(var, name)
        return self._optimizer.get_slot(var, name) if own is None else own

    def get_slot_names(self) -> list[str]:
        """Names of the slots of this wrapper and of the optimizer inside."""
        return sorted({*super().get_slot_names(), *self._optimizer.get_slot_names()})

    def variables(self) -> list[tf.Variable]:
        """The variables of this wrapper and of the optimizer inside."""
        return [*super().variables(), *self._optimizer.variables()]

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        """Adds the operations of one step."""
        raise NotImplementedError

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        self._optimizer._create_slots(list(var_list))
        self._create_variables(list(var_list))

    def _create_variables(self, variables: Sequence[tf.Variable]) -> None:
        """Creates the wrapper's variables, if they do not exist yet."""

    def _create_wide_slot(self, variable: tf.Variable, slot: str, name: str) -> tf.Variable:
        """Creates a slot of zeros, in at least 32 bits: a sum needs more digits than its parts."""
        zeros = tf.zeros_initializer()
        return self._get_or_make_slot_with_initializer(variable, zeros, variable.shape, wide_type(variable), slot, name)

    def _create_counter(self, name: str, variables: Sequence[tf.Variable], dtype: tf.DType = tf.int64) -> tf.Variable:
        """Creates a counter of this wrapper that starts at 0 and is saved in checkpoints."""
        first = min(variables, key=lambda variable: variable.name)
        return self._create_non_slot_variable(tf.zeros([], dtype), OWN_VARIABLES + name, first)


def wide_type(variable: tf.Variable) -> tf.DType:
    """Returns the type of the variable, or float32 if that has less than 32 bits.

    Example:
      >>> with tf.Graph().as_default():
      ...     wide_type(tf.get_variable('w', [2], tf.float16)).name
      'float32'
    """
    dtype = variable.dtype.base_dtype
    return tf.float32 if dtype.size < 4 else dtype


def unwrap(optimizer: Any) -> list[Any]:
    """Returns an optimizer and all that it wraps, outermost first.

    Example:
      >>> [type(each).__name__ for each in unwrap(tf.train.GradientDescentOptimizer(0.1))]
      ['GradientDescentOptimizer']
    """
    found = [optimizer]
    while isinstance(found[-1], OptimizerWrapper):
        found.append(found[-1].wrapped)
    return found


def trains_worker_copies(optimizer: Any) -> bool:
    """Whether the optimizer, or one that it wraps, trains copies of the variables that are the worker's own."""
    return any(isinstance(each, OptimizerWrapper) and each.trains_worker_copies for each in unwrap(optimizer))


def check_combination(optimizer: Any) -> None:
    """Raises a ValueError if a wrapper around easgd, or inside of it, cannot be combined with it.

    Example:
      >>> from moxing.tensorflow.optimizer.wrappers.dgc import DgcOptimizer
      >>> from moxing.tensorflow.optimizer.wrappers.easgd import EasgdOptimizer
      >>> with tf.Graph().as_default():
      ...     check_combination(DgcOptimizer(EasgdOptimizer(tf.train.GradientDescentOptimizer(0.1))))
      Traceback (most recent call last):
      ValueError: dgc around easgd: nothing is sent that could be compressed.
    """
    wrappers = [each for each in unwrap(optimizer) if isinstance(each, OptimizerWrapper)]
    positions = [position for position, each in enumerate(wrappers) if each.trains_worker_copies]
    if not positions:
        return
    if len(positions) > 1:
        raise ValueError("easgd around easgd: a worker has one center to exchange with.")
    for position, wrapper in enumerate(wrappers):
        if conflict := wrapper.easgd_conflict("around" if position < positions[0] else "inside of"):
            raise ValueError(f"{conflict}.")


def need_step_weight(optimizers: Sequence[Any]) -> bool:
    """Whether one of the optimizers, or one that it wraps, reads `StepContext.weight`."""
    return any(
        each.needs_step_weight
        for optimizer in optimizers
        for each in unwrap(optimizer)
        if isinstance(each, OptimizerWrapper)
    )


def flush_op(optimizers: Sequence[Any]) -> tf.Operation:
    """Returns one `OptimizerWrapper.flush_op` for all optimizers.

    Args:
      optimizers: the optimizers of the step, after `apply_gradients`; not only wrappers.

    Example:
      >>> with tf.Graph().as_default():
      ...     flush_op([tf.train.GradientDescentOptimizer(0.1)]).type
      'NoOp'
    """
    return tf.group(*[optimizer.flush_op() for optimizer in optimizers if isinstance(optimizer, OptimizerWrapper)])


def leave_op(optimizers: Sequence[Any]) -> tf.Operation:
    """Returns one `OptimizerWrapper.leave_op` for all optimizers.

    Args:
      optimizers: the optimizers of the step, after `apply_gradients`; not only wrappers.

    Example:
      >>> with tf.Graph().as_default():
      ...     leave_op([tf.train.GradientDescentOptimizer(0.1)]).type
      'NoOp'
    """
    return tf.group(*[optimizer.leave_op() for optimizer in optimizers if isinstance(optimizer, OptimizerWrapper)])


def when(condition: tf.Tensor, build: Callable[[], tf.Operation]) -> tf.Operation:
    """Runs the operation that `build` returns if `condition` is true."""

    def done() -> tf.Tensor:
        with tf.control_dependencies([build()]):
            return tf.constant(True)

    return branch(condition, done, lambda: tf.constant(False))


def branch(condition: tf.Tensor, one: Callable[[], tf.Tensor], other: Callable[[], tf.Tensor]) -> tf.Operation:
    """`tf.cond` with optimizers inside."""
    graph = tf.get_default_graph()
    result = tf.cond(condition, one, other)
    # TensorFlow's optimizers add their operations to this collection; those of a branch are in another graph.
    noted = tf.get_collection_ref(tf.GraphKeys.TRAIN_OP)
    noted[:] = [operation for operation in noted if operation.graph is graph]
    return result.op


def _computing_as_inner(wrapper: type[OptimizerWrapper]) -> type[OptimizerWrapper]:
    def compute_gradients(self: OptimizerWrapper, *args: Any, **kwargs: Any) -> Any:
        return self.wrapped.compute_gradients(*args, **kwargs)

    return type(wrapper.__name__, (wrapper,), {"compute_gradients": compute_gradients, "__module__": __name__})
