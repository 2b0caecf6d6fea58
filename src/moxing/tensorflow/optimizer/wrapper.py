"""What all optimizer wrappers share: an optimizer inside, which does the updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.whole_variables import beside

#: Begin of the names of variables that belong to a wrapper as a whole, not to one of the model's.
OWN_VARIABLES = "moxing/optimizer/"

GradientPairs = list[tuple[Any, tf.Variable]]


class OptimizerWrapper(tf.train.Optimizer):
    """An optimizer that does something to the gradients or the weights around the one that it wraps.

    A subclass says in `_apply` what happens in a step, and makes its variables in `_create_own`. The gradients are
    computed as TensorFlow does, or as the wrapped optimizer does where it has its own way.

    Args:
      optimizer: what is wrapped.
      name: of the operations and slots.
    """

    def __new__(cls, optimizer: Any = None, *args: Any, **kwargs: Any) -> OptimizerWrapper:
        # Not a method that asks each time: who computes gradients looks at the class, to know whether the optimizer
        # does anything to them.
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
        """One step: what the wrapper does, the updates, then `global_step`."""
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        if not pairs:
            raise ValueError(f"{self.get_name()}: no gradients provided for any variable.")
        # Variables are the graph's, also where the step is built in a branch of tf.cond; and their names are the same.
        with tf.init_scope(), tf.name_scope(None):
            self._create_slots([variable for _, variable in pairs])
        with tf.name_scope(name, self.get_name()):
            done = self._apply(pairs)
            if global_step is None:
                return done
            with tf.control_dependencies([done]), beside(global_step):
                return global_step.assign_add(tf.ones([], global_step.dtype.base_dtype), read_value=False)

    def flush_op(self) -> tf.Operation:
        """An operation for the end of the training: it applies what is left over, if there is anything."""
        return flush_op([self._optimizer])

    def get_slot(self, var: tf.Variable, name: str) -> Any:
        """A slot of this wrapper, else of the optimizer inside."""
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
        self._create_own(list(var_list))

    def _create_own(self, variables: Sequence[tf.Variable]) -> None:
        """Makes the wrapper's variables; those that are there already stay."""

    def _wide_slot(self, variable: tf.Variable, slot: str, name: str) -> tf.Variable:
        """A slot of zeros, in 32 bits for a variable of fewer: a sum needs digits that its parts do not have."""
        zeros = tf.zeros_initializer()
        return self._get_or_make_slot_with_initializer(variable, zeros, variable.shape, wide_type(variable), slot, name)

    def _number(self, name: str, variables: Sequence[tf.Variable], dtype: tf.DType = tf.int64) -> tf.Variable:
        """A counter of this wrapper, beginning with 0, saved with the checkpoint."""
        first = min(variables, key=lambda variable: variable.name)
        return self._create_non_slot_variable(tf.zeros([], dtype), OWN_VARIABLES + name, first)


def wide_type(variable: tf.Variable) -> tf.DType:
    """The type of the variable, or 32 bits where it has fewer.

    Example:
      >>> with tf.Graph().as_default():
      ...     wide_type(tf.get_variable('w', [2], tf.float16)).name
      'float32'
    """
    dtype = variable.dtype.base_dtype
    return tf.float32 if dtype.size < 4 else dtype


def flush_op(optimizers: Sequence[Any]) -> tf.Operation:
    """What is to be run once when training ends, for all optimizers: see `OptimizerWrapper.flush_op`.

    Args:
      optimizers: those of the training step, after their `apply_gradients`; also ones that are no wrappers.

    Example:
      >>> with tf.Graph().as_default():
      ...     flush_op([tf.train.GradientDescentOptimizer(0.1)]).type
      'NoOp'
    """
    return tf.group(*[optimizer.flush_op() for optimizer in optimizers if isinstance(optimizer, OptimizerWrapper)])


def when(condition: tf.Tensor, build: Callable[[], tf.Operation]) -> tf.Operation:
    """The operation that `build` makes, under a condition; what it does not need is not computed."""

    def done() -> tf.Tensor:
        with tf.control_dependencies([build()]):
            return tf.constant(True)

    return branch(condition, done, lambda: tf.constant(False))


def branch(condition: tf.Tensor, one: Callable[[], tf.Tensor], other: Callable[[], tf.Tensor]) -> tf.Operation:
    """`tf.cond` with optimizers inside."""
    graph = tf.get_default_graph()
    result = tf.cond(condition, one, other)
    # TensorFlow's optimizers note their operations there; those of a branch are not of this graph.
    noted = tf.get_collection_ref(tf.GraphKeys.TRAIN_OP)
    noted[:] = [operation for operation in noted if operation.graph is graph]
    return result.op


def _computing_as_inner(wrapper: type[OptimizerWrapper]) -> type[OptimizerWrapper]:
    def compute_gradients(self: OptimizerWrapper, *args: Any, **kwargs: Any) -> Any:
        return self.wrapped.compute_gradients(*args, **kwargs)

    return type(wrapper.__name__, (wrapper,), {"compute_gradients": compute_gradients, "__module__": __name__})
