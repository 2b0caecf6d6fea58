"""Asynchronous workers that apply their gradients together."""

from __future__ import annotations

import itertools
import numbers
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.wrapper import GradientPairs, OptimizerWrapper

#: A gradient never counts as too old: no worker can be ahead of another.
_NEVER_OLD = tf.int64.max


class SimpleSyncOptimizer(OptimizerWrapper):
    """Every step is one of all workers: the mean of their gradients is applied once.

        g = (g_1 + ... + g_n) / n of the n workers;  the optimizer inside applies g, on worker 0

    It is for a job with parameter servers, `--sync_replicas=False` and `--chief_inc_global_step=True`. Each ps
    collects the gradients of its variables. Worker 0 takes their mean when all are there, applies it, counts the step,
    and gives every worker a token, without which none goes on. All workers must do the same number of steps: one whose
    data ends before that of the others must run `flush_op`, which ends the data for all.

    (Of the original only the signature is known; `--sync_replicas=True` does the same, and weighs the workers by the
    samples they have.)

    Args:
      opt: what is wrapped.
      num_workers: how many workers there are.
      task_index: which one this is.
      name: of the operations.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', initializer=3.0, use_resource=True)
      ...     optimizer = SimpleSyncOptimizer(tf.train.GradientDescentOptimizer(1.0), num_workers=1, task_index=0)
      ...     train = optimizer.minimize(w)
      ...     session.run(tf.global_variables_initializer())
      ...     session.run(train)
      ...     float(session.run(w))
      2.0
    """

    #: All workers run the same script, and so build their optimizers in the same order: the number names what they
    #: share.
    _numbers = itertools.count()

    def __init__(
        self, opt: tf.train.Optimizer, num_workers: int = 1, task_index: int = 0, name: str = "SimpleSync"
    ) -> None:
        for argument, value, least in (("num_workers", num_workers, 1), ("task_index", task_index, 0)):
            if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
                raise ValueError(f"SimpleSyncOptimizer({argument}={value!r}): expected an integer from {least}.")
        if task_index >= num_workers:
            raise ValueError(
                f"SimpleSyncOptimizer(task_index={task_index}): expected one of num_workers={num_workers}, "
                f"0 to {num_workers - 1}."
            )
        super().__init__(opt, name)
        self._workers, self._index = int(num_workers), int(task_index)
        self._shared = f"moxing/simple_sync/{next(self._numbers)}"
        self._queues: list[tf.FIFOQueue] = []

    def flush_op(self) -> tf.Operation:
        """Ends the data for all workers, and applies what optimizers inside have left over."""
        if not self._queues:
            raise RuntimeError(f"{self.get_name()}: flush_op comes after apply_gradients.")
        closed = [queue.close(cancel_pending_enqueues=True) for queue in self._queues]
        with tf.control_dependencies(closed):
            return super().flush_op()

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        with tf.init_scope(), tf.device(_device_of(pairs[0][1])):
            self._queues = [
                tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f"{self._shared}/tokens/{worker}", name="tokens")
                for worker in range(self._workers)
            ]
        meetings = [_Meeting(gradient, variable, f"{self._shared}/{place}") for place, (gradient, variable) in
                    enumerate(pairs)]  # fmt: skip
        sent = [meeting.send() for meeting in meetings]
        if self._index == 0:
            means = [(meeting.mean(self._workers), meeting.variable) for meeting in meetings]
            applied = self._optimizer.apply_gradients(means)
            with tf.control_dependencies([applied]):
                sent += [queue.enqueue(tf.zeros([], tf.int64)) for queue in self._queues]
        with tf.control_dependencies(sent):
            return self._queues[self._index].dequeue(name="token").op


class _Meeting:
    """Where the workers' gradients of one variable meet: beside it."""

    def __init__(self, gradient: Any, variable: tf.Variable, name: str) -> None:
        # An accumulator for sparse gradients that can stand in a loop does not exist.
        self._gradient = tf.convert_to_tensor(gradient)
        self.variable = variable
        with tf.device(_device_of(variable)):
            self._accumulator = tf.raw_ops.ResourceConditionalAccumulator(
                dtype=self._gradient.dtype, shape=variable.shape, shared_name=name, reduction_type="MEAN"
            )

    def send(self) -> tf.Operation:
        return tf.raw_ops.ResourceAccumulatorApplyGradient(
            handle=self._accumulator, local_step=tf.constant(_NEVER_OLD, tf.int64), gradient=self._gradient
        )

    def mean(self, workers: int) -> tf.Tensor:
        taken = tf.raw_ops.ResourceAccumulatorTakeGradient(
            handle=self._accumulator, num_required=workers, dtype=self._gradient.dtype
        )
        taken.set_shape(self.variable.shape)
        return taken


def _device_of(variable: tf.Variable) -> str | None:
    return variable.device or None
