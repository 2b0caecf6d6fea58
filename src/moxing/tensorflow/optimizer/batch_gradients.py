"""Gradients of several batches, applied as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.framework.util.numbers_given import is_integer
from moxing.tensorflow.optimizer.simple_sync_optimizer import SimpleSyncOptimizer
from moxing.tensorflow.optimizer.whole_variables import beside
from moxing.tensorflow.optimizer.workers import num_workers, task_device, task_index
from moxing.tensorflow.optimizer.wrapper import OWN_VARIABLES, GradientPairs, OptimizerWrapper, when, wide_type


class BatchGradientsOptimizer(OptimizerWrapper):
    """Adds up the gradients of `num_batches` steps, and lets the optimizer inside apply their mean.

    With the gradient g of a micro-step, and a, n, which begin with 0:

        a = a + g,  n = n + 1
        if n = num_batches:  the optimizer inside applies a / n;  a = 0,  n = 0

    So `num_batches` steps are one step with a batch that is so many times as large, for models without batch norm.
    `global_step` rises on every micro-step, and that is what a learning rate that follows it sees.

    The sums are saved with the checkpoint: a training that is interrupted between two updates goes on there. What is
    left over when it ends, `flush_op` applies, divided by the number of batches that it came from. A step that dynamic
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
            for variable in variables:
                name = f"{variable.op.name}/{self.get_name()}"
                self._own[variable.ref()] = zeros(name, variable.shape, wide_type(variable))

    def _sum_of(self, variable: tf.Variable) -> tf.Variable:
        return self._own[variable.ref()] if self._apart else self.get_slot(variable, "sum")

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        added = []
        self._sums = []
        for gradient, variable in pairs:
            total, sparse = self._sum_of(variable), isinstance(gradient, tf.IndexedSlices)
            self._sums.append((total, variable, sparse))
            with beside(total):
                if sparse:
                    values = tf.cast(gradient.values, total.dtype)
                    added.append(tf.scatter_add(total, gradient.indices, values).op)
                else:
                    added.append(total.assign_add(tf.cast(gradient, total.dtype), read_value=False))
        with tf.control_dependencies(added):
            count = tf.assign_add(self._count, 1)
        # Not less than: the number may have been larger when the checkpoint was saved.
        return when(count >= self._num_batches, self._apply_mean)

    def _apply_mean(self) -> tf.Operation:
        count = self._count.read_value()
        applied = self._optimizer.apply_gradients(
            [(_mean(total, count, variable, sparse), variable) for total, variable, sparse in self._sums]
        )
        with tf.control_dependencies([applied]):
            cleared = [total.assign(tf.zeros_like(total), read_value=False) for total, _, _ in self._sums]
            return tf.group(*cleared, self._count.assign(0, read_value=False))


def _known_workers() -> int:
    count = num_workers()
    if count is None:
        raise ValueError(
            "batch_gradients(sync_on_apply=True): --worker_hosts does not tell how many workers there are; give the "
            "flag, or sync_on_apply=False."
        )
    return count


def _mean(total: tf.Variable, count: tf.Tensor, variable: tf.Variable, sparse: bool) -> Any:
    with beside(total):
        mean = tf.cast(total.read_value() / tf.cast(count, total.dtype), variable.dtype.base_dtype)
        if not sparse:
            return mean
        used = tf.reduce_any(tf.not_equal(mean, 0), axis=list(range(1, mean.shape.rank)))
        rows = tf.squeeze(tf.where(used), 1)
        return tf.IndexedSlices(tf.gather(mean, rows), rows, tf.shape(mean, out_type=tf.int64))
