"""Asynchronous workers that apply their gradients together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.number_checks import is_integer
from moxing.tensorflow.optimizer.step_context import current_context
from moxing.tensorflow.optimizer.whole_variables import colocated_with
from moxing.tensorflow.optimizer.wrappers.wrapper import GradientPairs, OptimizerWrapper, branch

#: Gradients are never stale: no worker can be ahead of another.
_NEVER_OLD = tf.int64.max


class SimpleSyncOptimizer(OptimizerWrapper):
    """Every step is one of all workers: the mean of their gradients is applied once.

        g = (g_1 + ... + g_n) / n of the n workers;  the optimizer inside applies g, on worker 0

    (inside of `batch_gradients` each g_i is weighted by its number of samples).

    Use it in a job with parameter servers, `--sync_replicas=False` and `--chief_inc_global_step=True`. Each ps
    collects the gradients of its variables. Worker 0 waits for all of them, applies their mean, counts the step and
    sends every worker a token, for which it waits. A worker that leaves must run `leave_op`, which ends the data of
    the others: they would wait for it.

    (Only the signature of the original is known; `--sync_replicas=True` does the same, and weights the workers by their
    samples.)

    Args:
      opt: the optimizer inside.
      num_workers: number of workers.
      task_index: index of this worker.
      name: name of the operations.

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

    #: Numbers the optimizers. All workers run the same script and build them in the same order, so the number names
    #: the resources that they share.
    _numbers = itertools.count()

    def __init__(
        self, opt: tf.train.Optimizer, num_workers: int = 1, task_index: int = 0, name: str = "SimpleSync"
    ) -> None:
        for argument, value, least in (("num_workers", num_workers, 1), ("task_index", task_index, 0)):
            if not is_integer(value, least):
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
        self._variables: list[tf.Variable] = []
        self._weighted = False

    def apply_gradients(
        self, grads_and_vars: Any, global_step: tf.Variable | None = None, name: str | None = None
    ) -> tf.Operation:
        """Adds one step of all workers. Worker 0 increments `global_step` before it releases the others."""
        self._global_step = global_step
        return super().apply_gradients(grads_and_vars, None, name)

    def easgd_conflict(self, side: str) -> str:
        return (
            f"batch_gradients(sync_on_apply=True) {side} easgd: workers that apply together have no variables of their "
            "own (sync_on_apply=False)"
        )

    def leave_op(self) -> tf.Operation:
        """Returns an operation that ends the data of all workers."""
        if not self._queues:
            raise RuntimeError(f"{self.get_name()}: leave_op comes after apply_gradients.")
        if self._index == 0:
            return self._end()
        # Worker 0 waits for gradients. The others wait for worker 0.
        presence, amount, *accumulators = self._accumulators()
        used = [presence, *([amount] if self._weighted else []), *accumulators]
        return tf.group(*[accumulator.send(accumulator.zeros()) for accumulator in used])

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        self._variables = [variable for _, variable in pairs]
        with tf.init_scope(), colocated_with(self._variables[0]):
            self._queues = [
                tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f"{self._shared}/tokens/{worker}", name="tokens")
                for worker in range(self._workers)
            ]
        weight = current_context().weight
        self._weighted = weight is not None
        presence, amount, *accumulators = self._accumulators()
        sent = [presence.send(tf.ones([]))]
        if self._weighted:
            sent.append(amount.send(tf.cast(weight, tf.float32)))
        for accumulator, (gradient, _) in zip(accumulators, pairs, strict=True):
            # TensorFlow has no accumulator for sparse gradients that works in a loop.
            value = tf.convert_to_tensor(gradient)
            sent.append(accumulator.send(value * tf.cast(weight, value.dtype) if self._weighted else value))
        if self._index == 0:
            present = presence.mean(self._workers)
            means = [accumulator.mean(self._workers) for accumulator in accumulators]
            if self._weighted:
                means = self._divided(means, amount.mean(self._workers))
            sent.append(self._lead(present, means))
        with tf.control_dependencies(sent):
            # Raises the end of the data if the queue is closed.
            return self._queues[self._index].dequeue(name="token").op

    def _divided(self, means: Sequence[tf.Tensor], weight: tf.Tensor) -> list[tf.Tensor]:
        """Divides the means of weighted gradients by the mean weight."""
        divided = []
        for value, variable in zip(means, self._variables, strict=True):
            with colocated_with(variable):
                divided.append(value / tf.cast(tf.maximum(weight, 1e-30), value.dtype))
        return divided

    def _lead(self, present: tf.Tensor, means: Sequence[tf.Tensor]) -> tf.Operation:
        """Adds what worker 0 does when it has received all gradients."""

        def apply_and_release() -> tf.Tensor:
            pairs = list(zip(means, self._variables, strict=True))
            applied = self._optimizer.apply_gradients(pairs, global_step=self._global_step)
            with tf.control_dependencies([applied]):
                tokens = [queue.enqueue(tf.zeros([], tf.int64)) for queue in self._queues]
            with tf.control_dependencies(tokens):
                return tf.constant(True)

        def end() -> tf.Tensor:
            with tf.control_dependencies([self._end()]):
                return tf.constant(False)

        return branch(present >= 1, apply_and_release, end)

    def _end(self) -> tf.Operation:
        return tf.group(*[queue.close() for queue in self._queues])

    def _accumulators(self) -> list[_Accumulator]:
        """Returns the accumulators of presence, of weights, and of the gradients."""
        first = self._variables[0]
        return [
            _Accumulator(first, tf.float32, [], f"{self._shared}/presence"),
            _Accumulator(first, tf.float32, [], f"{self._shared}/weight"),
            *(
                _Accumulator(variable, variable.dtype.base_dtype, variable.shape, f"{self._shared}/{place}")
                for place, variable in enumerate(self._variables)
            ),
        ]


class _Accumulator:
    """Adds up tensors of all workers, on the device of a variable."""

    def __init__(self, variable: tf.Variable, dtype: tf.DType, shape: Any, name: str) -> None:
        self._dtype, self._shape = dtype, shape
        with colocated_with(variable):
            self._accumulator = tf.raw_ops.ResourceConditionalAccumulator(
                dtype=dtype, shape=shape, shared_name=name, reduction_type="MEAN"
            )

    def zeros(self) -> tf.Tensor:
        return tf.zeros(self._shape, self._dtype)

    def send(self, tensor: tf.Tensor) -> tf.Operation:
        return tf.raw_ops.ResourceAccumulatorApplyGradient(
            handle=self._accumulator, local_step=tf.constant(_NEVER_OLD, tf.int64), gradient=tensor
        )

    def mean(self, workers: int) -> tf.Tensor:
        taken = tf.raw_ops.ResourceAccumulatorTakeGradient(
            handle=self._accumulator, num_required=workers, dtype=self._dtype
        )
        taken.set_shape(self._shape)
        return taken
