"""Gradients of several batches, applied as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.framework.util.numbers_given import is_integer
from moxing.tensorflow.optimizer.simple_sync_optimizer import SimpleSyncOptimizer
from moxing.tensorflow.optimizer.surroundings import surroundings, told
from moxing.tensorflow.optimizer.whole_variables import beside
from moxing.tensorflow.optimizer.workers import num_workers, task_device, task_index
from moxing.tensorflow.optimizer.wrapper import OWN_VARIABLES, GradientPairs, OptimizerWrapper, when, wide_type


class BatchGradientsOptimizer(OptimizerWrapper):
    """Adds up the gradients of `num_batches` steps, and lets the optimizer inside apply their mean.

    With the gradient g of a micro-step, s, how many whole batches its samples are, and a, n, m, which begin with 0:

        a = a + s * g,  n = n + 1,  m = m + (1 - s)
        if n = num_batches:  the optimizer inside applies a / (n - m);  a = 0,  n = 0,  m = 0

    So `num_batches` steps are one step with all their samples as one batch, for models without batch norm. In `mox.run`
    s is 1 where all batches have the same size; else it is the samples of the step, of all towers and of all workers
    that go in step, divided by what they are with `batch_size` samples each. In a training loop of your own s is 1.
    `global_step` rises on every micro-step, and that is what a learning rate that follows it sees.

    The sums are saved with the checkpoint: a training that is interrupted between two updates goes on there. What is
    left over when it ends, `flush_op` applies, divided by what it came from. A step that dynamic
    loss scaling leaves out is not one of the `num_batches`. Sums of sparse gradients are dense; the optimizer inside
    gets the rows of them that are not 0.

    In a cluster with `--sync_replicas=False` every worker adds up its own gradients in its own memory, and a
    micro-step sends nothing. These sums are in no checkpoint. With `sync_on_apply` the workers wait for each other when
    they apply, and the mean of all is applied once; without it each applies its own. A worker that ends then ends the
    data for the others too, and what is left over is dropped, for the others may have nothing to add to it.

    Args:
      optimizer: what is wrapped.
      num_batches: how many steps make an update.
      sync_on_apply: workers that do not go in step otherwise apply together. Where they do, or there is one, it changes
        nothing.
      name: of the operations and slots.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=0.0, use_resource=True)
      ...     train = BatchGradientsOptimizer(tf.train.GradientDescentOptimizer(1.0), num_batches=2).minimize(-w)
      ...     session.run(tf.global_variables_initializer())
      ...     [session.run(train) or float(session.run(w)) for _ in range(4)]
      [0.0, 1.0, 1.0, 2.0]
    """

    #: Asks for `Surroundings.weight`.
    weighs = True

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
        # Workers that do not go in step: only with parameter servers.
        self._apart: bool = not FLAGS.get("sync_replicas") and task_device() is not None
        self._together: bool = self._apart and sync_on_apply
        if self._together:
            optimizer = SimpleSyncOptimizer(optimizer, _known_workers(), task_index())
        super().__init__(optimizer, name)
        self._num_batches: int = int(num_batches)
        self._own: dict[Any, tf.Variable] = {}
        self._sums: list[tuple[tf.Variable, tf.Variable, bool]] = []

    def flush_op(self) -> tf.Operation:
        """Applies the mean of what is left over, if there is anything."""
        if not self._sums:
            raise RuntimeError(f"{self.get_name()}: flush_op comes after apply_gradients.")
        if self._together:
            return super().flush_op()
        with tf.name_scope(f"{self.get_name()}/flush"):
            flushed = when(self._count.read_value() > 0, self._apply_mean)
            with tf.control_dependencies([flushed]):
                return super().flush_op()

    def _create_own(self, variables: Sequence[tf.Variable]) -> None:
        if self._apart:
            self._create_in_this_worker(variables)
            return
        self._count = self._number("batch_gradients/count", variables)
        self._missing = self._number("batch_gradients/missing", variables, tf.float64)
        for variable in variables:
            self._wide_slot(variable, "sum", self.get_name())

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
        return self._own[variable.ref()] if self._apart else self.get_slot(variable, "sum")

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        weight = surroundings().weight
        # Once for all variables: a small model's step is made of such small operations.
        types = {self._sum_of(variable).dtype.base_dtype for _, variable in pairs} if weight is not None else set()
        factors = {dtype: tf.cast(weight, dtype) for dtype in types}
        negative = {dtype: -factor for dtype, factor in factors.items()}
        added = []
        self._sums = []
        for gradient, variable in pairs:
            total, sparse = self._sum_of(variable), isinstance(gradient, tf.IndexedSlices)
            self._sums.append((total, variable, sparse))
            with beside(total):
                factor = (negative if not sparse else factors).get(total.dtype.base_dtype)
                added.append(_added(total, gradient, factor))
        if weight is not None:
            with beside(self._missing):
                less = tf.constant(1.0, tf.float64) - tf.cast(weight, tf.float64)
                added.append(self._missing.assign_add(less, read_value=False))
        with tf.control_dependencies(added):
            count = tf.assign_add(self._count, 1)
        # Not less than: the number may have been larger when the checkpoint was saved.
        return when(count >= self._num_batches, self._apply_mean)

    def _apply_mean(self) -> tf.Operation:
        # Read also where all batches are whole ones: those of the checkpoint may not have been.
        whole = tf.cast(self._count.read_value(), tf.float64) - self._missing.read_value()
        means = [(_mean(total, whole, variable, sparse), variable) for total, variable, sparse in self._sums]
        # Of this update, not of its last batch: another one of this class may be inside.
        with told(weight=whole / self._num_batches):
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
            "batch_gradients(sync_on_apply=True): neither mox.run nor --worker_hosts tells how many workers there are; "
            "give the flag, or sync_on_apply=False."
        )
    return count


def _added(total: tf.Variable, gradient: Any, factor: tf.Tensor | None) -> tf.Operation:
    """Adds a gradient to a sum, times the factor of a sparse one, minus the factor of a dense one; None: as it is."""
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.cast(gradient.values, total.dtype)
        return tf.scatter_add(total, gradient.indices, values if factor is None else values * factor).op
    wide = tf.cast(gradient, total.dtype)
    if factor is None:
        return total.assign_add(wide, read_value=False)
    # The product and the sum in one pass over the memory, as fast as the sum alone.
    return tf.raw_ops.ResourceApplyGradientDescent(var=total.handle, alpha=factor, delta=wide, use_locking=False)


def _mean(total: tf.Variable, whole: tf.Tensor, variable: tf.Variable, sparse: bool) -> Any:
    with beside(total):
        mean = tf.cast(total.read_value() / tf.cast(whole, total.dtype), variable.dtype.base_dtype)
        if not sparse:
            return mean
        used = tf.reduce_any(tf.not_equal(mean, 0), axis=list(range(1, mean.shape.rank)))
        rows = tf.squeeze(tf.where(used), 1)
        return tf.IndexedSlices(tf.gather(mean, rows), rows, tf.shape(mean, out_type=tf.int64))
