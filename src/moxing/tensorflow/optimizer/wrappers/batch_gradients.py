"""Accumulates the gradients of several batches and applies their mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.framework.util.number_checks import is_integer
from moxing.tensorflow.optimizer.simple_sync_optimizer import SimpleSyncOptimizer
from moxing.tensorflow.optimizer.step_context import current_context, step_context
from moxing.tensorflow.optimizer.whole_variables import colocated_with
from moxing.tensorflow.optimizer.workers import num_workers, task_device, task_index
from moxing.tensorflow.optimizer.wrappers.wrapper import OWN_VARIABLES, GradientPairs, OptimizerWrapper, when, wide_type


class BatchGradientsOptimizer(OptimizerWrapper):
    """Accumulates the gradients of `num_batches` steps; then the optimizer inside applies their mean.

    With the gradient g of a micro-step, its samples s as a fraction of a full batch, and a, n, m, initially 0:

        a = a + s * g,  n = n + 1,  m = m + (1 - s)
        if n = num_batches:  the optimizer inside applies a / (n - m);  a = 0,  n = 0,  m = 0

    So `num_batches` steps equal one step with all their samples as one batch, for models without batch normalisation.
    In `mox.run` s is 1 if all batches have the same size; otherwise it is the number of samples of the step, of all
    towers and synchronous workers, divided by that of full batches. In a training loop of your own s is 1.
    `global_step` is incremented in every micro-step; learning-rate schedules follow it.

    The sums are saved in checkpoints: a training that is interrupted between two updates resumes there. `flush_op`
    applies the mean of the remaining gradients at the end. A step that dynamic loss scaling skips does not count. Sums
    of sparse gradients are dense; the optimizer inside receives their rows that are not 0.

    In a cluster with `--sync_replicas=False` every worker accumulates in its own memory; a micro-step sends nothing.
    These sums are in no checkpoint. With `sync_on_apply` the workers wait for each other before an update, and the mean
    of all is applied once; without it each worker applies its own. With `sync_on_apply` a worker that leaves also ends
    the data of the others, and remaining gradients are dropped.

    Args:
      optimizer: the optimizer inside.
      num_batches: number of steps per update.
      sync_on_apply: true if asynchronous workers apply their updates together. It has no effect on synchronous
        workers or a single one.
      name: name of the operations and slots.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=0.0, use_resource=True)
      ...     train = BatchGradientsOptimizer(tf.train.GradientDescentOptimizer(1.0), num_batches=2).minimize(-w)
      ...     session.run(tf.global_variables_initializer())
      ...     [session.run(train) or float(session.run(w)) for _ in range(4)]
      [0.0, 1.0, 1.0, 2.0]
    """

    needs_step_weight = True

    def __init__(
        self,
        optimizer: tf.train.Optimizer,
        num_batches: int,
        sync_on_apply: bool = False,
        name: str = "BatchGradients",
    ) -> None:
        if not is_integer(num_batches, 1):
            raise ValueError(f"batch_gradients(num_batches={num_batches!r}): expected an integer from 1.")
        if not isinstance(sync_on_apply, bool):
            raise ValueError(f"batch_gradients(sync_on_apply={sync_on_apply!r}): expected True or False.")
        # Asynchronous workers exist only with parameter servers.
        self._asynchronous: bool = not FLAGS.get("sync_replicas") and task_device() is not None
        self._sync_on_apply: bool = self._asynchronous and sync_on_apply
        if self._sync_on_apply:
            optimizer = SimpleSyncOptimizer(optimizer, _known_workers(), task_index())
        super().__init__(optimizer, name)
        self._num_batches: int = int(num_batches)
        self._own: dict[Any, tf.Variable] = {}
        self._sums: list[tuple[tf.Variable, tf.Variable, bool]] = []

    def flush_op(self) -> tf.Operation:
        """Returns an operation that applies the mean of the remaining gradients, if there are any."""
        if not self._sums:
            raise RuntimeError(f"{self.get_name()}: flush_op comes after apply_gradients.")
        if self._sync_on_apply:
            return super().flush_op()
        with tf.name_scope(f"{self.get_name()}/flush"):
            flushed = when(self._count.read_value() > 0, self._apply_mean)
            with tf.control_dependencies([flushed]):
                return super().flush_op()

    def _create_variables(self, variables: Sequence[tf.Variable]) -> None:
        if self._asynchronous:
            self._create_in_this_worker(variables)
            return
        self._count = self._create_counter("batch_gradients/count", variables)
        self._missing = self._create_counter("batch_gradients/missing", variables, tf.float64)
        for variable in variables:
            self._create_wide_slot(variable, "sum", self.get_name())

    def _create_in_this_worker(self, variables: Sequence[tf.Variable]) -> None:
        def zeros(name: str, shape: Any, dtype: tf.DType) -> tf.Variable:
            if name not in self._own:
                value = tf.zeros(shape, dtype)
                collections = [tf.GraphKeys.LOCAL_VARIABLES]
                self._own[name] = tf.Variable(
                    value, trainable=False, collections=collections, name=name, use_resource=True
                )
            return self._own[name]

        with tf.device(task_device()):
            self._count = zeros(OWN_VARIABLES + "batch_gradients/count", [], tf.int64)
            self._missing = zeros(OWN_VARIABLES + "batch_gradients/missing", [], tf.float64)
            for variable in variables:
                name = f"{variable.op.name}/{self.get_name()}"
                self._own[variable.ref()] = zeros(name, variable.shape, wide_type(variable))

    def _sum_of(self, variable: tf.Variable) -> tf.Variable:
        return self._own[variable.ref()] if self._asynchronous else self.get_slot(variable, "sum")

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        weight = current_context().weight
        # Cast once for all variables: small operations dominate the step of a small model.
        types = {self._sum_of(variable).dtype.base_dtype for _, variable in pairs} if weight is not None else set()
        factors = {dtype: tf.cast(weight, dtype) for dtype in types}
        negative = {dtype: -factor for dtype, factor in factors.items()}
        added = []
        self._sums = []
        for gradient, variable in pairs:
            total, sparse = self._sum_of(variable), isinstance(gradient, tf.IndexedSlices)
            self._sums.append((total, variable, sparse))
            with colocated_with(total):
                factor = (negative if not sparse else factors).get(total.dtype.base_dtype)
                added.append(_added(total, gradient, factor))
        if weight is not None:
            with colocated_with(self._missing):
                less = tf.constant(1.0, tf.float64) - tf.cast(weight, tf.float64)
                added.append(self._missing.assign_add(less, read_value=False))
        with tf.control_dependencies(added):
            count = tf.assign_add(self._count, 1)
        # ">=": num_batches may have been larger when the checkpoint was saved.
        return when(count >= self._num_batches, self._apply_mean)

    def _apply_mean(self) -> tf.Operation:
        # Read even if all batches are full: those before the checkpoint may not have been.
        full_batches = tf.cast(self._count.read_value(), tf.float64) - self._missing.read_value()
        means = [(_mean(total, full_batches, variable, sparse), variable) for total, variable, sparse in self._sums]
        # The weight of the update, not of its last batch: another batch_gradients may be inside.
        with step_context(weight=full_batches / self._num_batches):
            applied = self._optimizer.apply_gradients(means)
        with tf.control_dependencies([applied]):
            cleared = [total.assign(tf.zeros_like(total), read_value=False) for total, _, _ in self._sums]
            numbers = [
                number.assign(tf.zeros_like(number), read_value=False) for number in (self._count, self._missing)
            ]
            return tf.group(*cleared, *numbers)


def _known_workers() -> int:
    count = num_workers()
    if count is None:
        raise ValueError(
            "batch_gradients(sync_on_apply=True): the number of workers is unknown. Pass --worker_hosts, or "
            "sync_on_apply=False."
        )
    return count


def _added(total: tf.Variable, gradient: Any, factor: tf.Tensor | None) -> tf.Operation:
    """Adds a gradient to a sum, multiplied by `factor` (by `-factor` if it is dense); None: unchanged."""
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.cast(gradient.values, total.dtype)
        return tf.scatter_add(total, gradient.indices, values if factor is None else values * factor).op
    wide = tf.cast(gradient, total.dtype)
    if factor is None:
        return total.assign_add(wide, read_value=False)
    # Product and sum in one pass over the memory, as fast as the sum alone.
    return tf.raw_ops.ResourceApplyGradientDescent(var=total.handle, alpha=factor, delta=wide, use_locking=False)


def _mean(total: tf.Variable, full_batches: tf.Tensor, variable: tf.Variable, sparse: bool) -> Any:
    with colocated_with(total):
        mean = tf.cast(total.read_value() / tf.cast(full_batches, total.dtype), variable.dtype.base_dtype)
        if not sparse:
            return mean
        used = tf.reduce_any(tf.not_equal(mean, 0), axis=list(range(1, mean.shape.rank)))
        rows = tf.squeeze(tf.where(used), 1)
        return tf.IndexedSlices(tf.gather(mean, rows), rows, tf.shape(mean, out_type=tf.int64))
