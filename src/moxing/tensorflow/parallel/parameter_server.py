"""`parameter_server` in a cluster: variables live on the ps, the workers read them and send gradients.

Without `sync_replicas` every worker applies its gradients as soon as it has them. With it, a step is one of all
workers: every ps collects the gradients of its variables, the chief takes their mean when all are there, applies it,
and gives every worker a token for the next step. A worker whose data has ended sends gradients of weight 0; when all
have ended the chief closes the queues of the tokens, and that is the end of the data for everyone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.parallel.cluster_worker import ClusterWorker, number, one_of
from moxing.tensorflow.parallel.devices import placed
from moxing.tensorflow.parallel.gradients import GradientPairs, flat, shares_of
from moxing.tensorflow.parallel.loss_scale import LossScale, loss_scale
from moxing.tensorflow.parallel.optimizers import clipped_and_applied, made
from moxing.tensorflow.parallel.strategy import Tower
from moxing.tf1.towers import Instead

#: A variable from this size on is spread over all ps, so that none of them must send and receive it alone.
_LARGE_BYTES = 32 << 20

#: A token is the step times this, plus what `halt` becomes.
_TOKEN = 4

#: A gradient never counts as too old: no worker can be ahead of another.
_NEVER_OLD = tf.int64.max


class ParameterServer(ClusterWorker):
    """Variables on the ps, each on the one that holds the fewest bytes when it is created.

    Args:
      devices: where the towers of this worker stand.
      workers: how many workers there are.
      index: which one this is.
      run: number of the run in this process.
      servers: how many ps there are.
      in_step: `--sync_replicas`.
    """

    def __init__(self, devices: Sequence[str], workers: int, index: int, run: int, servers: int, in_step: bool) -> None:
        super().__init__(devices, workers, index, run)
        self.in_step = in_step
        self._bytes = [0] * servers
        self._stop: tf.Variable | None = None

    @property
    def owns_variables(self) -> bool:
        return self.is_chief

    def placed_on(self, device: str) -> Callable[[tf.Operation], str]:
        return placed(device, self._least_loaded)

    @contextmanager
    def tower(self, index: int) -> Iterator[None]:
        with super().tower(index), self._getting():
            yield

    @contextmanager
    def beside(self, scope: str, instead: Instead) -> Iterator[list[tf.Variable]]:
        with super().beside(scope, instead) as own, self._getting():
            yield own

    def _getting(self) -> AbstractContextManager[Any]:
        scope = tf.get_variable_scope()
        return tf.variable_scope(scope, custom_getter=self._get_variable, auxiliary_name_scope=False)

    def _get_variable(
        self, getter: Callable[..., Any], name: str, regularizer: Any = None, partitioner: Any = None, **kwargs: Any
    ) -> Any:
        """What is particular to `tf.get_variable`: large variables are spread over the ps, regularizers stay here."""

        def here(variable: Any) -> Any:
            # It would stand beside the variable, which would travel to the worker and back.
            with tf.colocate_with(None, ignore_existing=True), self.local():
                return regularizer(variable)

        if partitioner is None and self._is_large(kwargs.get("shape"), kwargs.get("dtype")):
            partitioner = tf.fixed_size_partitioner(len(self._bytes))
        return getter(name, regularizer=None if regularizer is None else here, partitioner=partitioner, **kwargs)

    def _is_large(self, shape: Any, dtype: Any) -> bool:
        shape = tf.TensorShape(shape)
        if not shape.rank or not shape.is_fully_defined() or not 1 < len(self._bytes) <= shape.as_list()[0]:
            return False
        return shape.num_elements() * tf.as_dtype(dtype or tf.float32).size >= _LARGE_BYTES

    def create(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        if arguments.get("trainable"):
            # However often the model reads a variable, it comes over the network once a step.
            arguments["caching_device"] = arguments.get("caching_device") or f"{self.task}/cpu:0"
        return super().create(create, **arguments)

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        optimizers = [made(function) for function in optimizer_fns]
        if self.is_chief or not self.in_step:
            self.optimizers = optimizers
        scale = loss_scale()
        weight = self.weight(towers)
        groups = self.gradients(towers, optimizers, scale, shares_of([tower.weight for tower in towers]))
        if self.in_step:
            return self._together(optimizers, groups, weight, scale, before, global_step)
        self.applied = groups
        counts = self.is_chief or not FLAGS.get("chief_inc_global_step")
        with self.counted(self.samples(towers, optimizers)):
            applied = clipped_and_applied(optimizers, groups, scale, [*before, *flat(groups)], global_step, counts)
        with tf.control_dependencies([applied]):
            # In every step: the others bring the counter to its end while this worker is in the middle of its loop.
            self.reached = tf.cast(global_step.read_value() >= self.max_steps, tf.int32)
        return tf.group(applied, self.reached, name="train_op")

    def ready(self) -> list[tf.Operation]:
        return [self._stop.initializer] if self._stop is not None and self.is_chief else []

    def request_stop(self, session: tf.Session, why: int) -> None:
        if self._stop is not None:
            session.run(self._request, {self._why: why})

    def configure(self, config: tf.ConfigProto) -> None:
        # What happens to another worker is none of this session's business.
        config.device_filters.extend(["/job:ps", self.task])

    def _least_loaded(self, operation: tf.Operation) -> str:
        shape = tf.TensorShape(operation.get_attr("shape"))
        size = (shape.num_elements() or 0) * tf.as_dtype(operation.get_attr("dtype")).size
        server = self._bytes.index(min(self._bytes))
        # Also a small one counts for something: it costs a message.
        self._bytes[server] += size + 1024
        return f"/job:ps/task:{server}/cpu:0"

    def _together(
        self,
        optimizers: Sequence[Any],
        groups: Sequence[GradientPairs],
        weight: tf.Tensor | None,
        scale: LossScale,
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        with tf.device("/job:ps/task:0/cpu:0"):
            self._stop = number(f"{self.shared}/stop")
            self._why = tf.placeholder(tf.int64, [])
            self._request = tf.assign(self._stop, tf.maximum(self._stop, self._why)).op
            queues = [
                tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f"{self.shared}/tokens/{worker}", name="tokens")
                for worker in range(self.workers)
            ]
        meetings = [
            [
                _Meeting(gradient, variable, f"{self.shared}/{loss}/{place}")
                for place, (gradient, variable) in enumerate(group)
            ]
            for loss, group in enumerate(groups)
        ]
        weights = None if weight is None else _Meeting(weight, global_step, f"{self.shared}/weight")
        with tf.control_dependencies(before):
            sent = [meeting.send(weight) for group in meetings for meeting in group]
            if weights is not None:
                sent.append(weights.send(None))
        if self.is_chief:
            total = None if weights is None else weights.mean(self.workers)
            # A mean as well: of the samples of one worker.
            with tf.control_dependencies(before), self.counted(total):
                sent.append(self._lead(optimizers, meetings, total, scale, global_step, queues))
        with tf.control_dependencies(sent):
            token = queues[self.index].dequeue(name="token")
        self.halt = tf.cast(token % _TOKEN, tf.int32)
        return tf.group(self.halt, name="train_op")

    def _lead(
        self,
        optimizers: Sequence[Any],
        meetings: Sequence[Sequence[_Meeting]],
        total: tf.Tensor | None,
        scale: LossScale,
        global_step: tf.Variable,
        queues: Sequence[tf.FIFOQueue],
    ) -> tf.Operation:
        """What the chief does when all gradients are there."""
        groups = [[(meeting.mean(self.workers, total), meeting.variable) for meeting in group] for group in meetings]
        self.applied = groups

        def go_on() -> tf.Operation:
            applied = clipped_and_applied(optimizers, groups, scale, flat(groups), global_step)
            with tf.control_dependencies([applied]):
                token = global_step.read_value() * _TOKEN + self._stop.read_value()  # type: ignore[union-attr]
            return tf.group(*[queue.enqueue(token) for queue in queues])

        if total is None:
            return go_on()

        def end() -> tf.Operation:
            return tf.group(*[queue.close() for queue in queues])

        return one_of(total > 0, go_on, end)


class _Meeting:
    """Where the workers' gradients of one variable meet: on the ps that holds it.

    Args:
      gradient: this worker's.
      variable: the variable.
      name: the same on all workers.
    """

    def __init__(self, gradient: Any, variable: tf.Variable, name: str) -> None:
        # An accumulator for sparse gradients that can stand in a loop does not exist.
        self._gradient = tf.convert_to_tensor(gradient)
        self.variable = variable
        with tf.device(variable.device):
            self._accumulator = tf.raw_ops.ResourceConditionalAccumulator(
                dtype=self._gradient.dtype, shape=self._gradient.shape, shared_name=name, reduction_type="MEAN"
            )

    def send(self, weight: tf.Tensor | None) -> tf.Operation:
        """Sends this worker's gradient, multiplied by its weight."""
        gradient = self._gradient
        if weight is not None:
            gradient *= tf.cast(weight, gradient.dtype)
        return tf.raw_ops.ResourceAccumulatorApplyGradient(
            handle=self._accumulator, local_step=tf.constant(_NEVER_OLD, tf.int64), gradient=gradient
        )

    def mean(self, workers: int, total: tf.Tensor | None = None) -> tf.Tensor:
        """The mean when all workers have sent, divided by the mean weight."""
        taken = tf.raw_ops.ResourceAccumulatorTakeGradient(
            handle=self._accumulator, num_required=workers, dtype=self._gradient.dtype
        )
        taken.set_shape(self._gradient.shape)
        if total is None:
            return taken
        with tf.device(self.variable.device):
            # Here, or the mean would travel to the chief and back.
            return taken / tf.cast(tf.maximum(total, 1e-30), taken.dtype)
