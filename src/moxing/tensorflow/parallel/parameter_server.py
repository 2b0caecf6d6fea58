"""`parameter_server` in a cluster: variables live on the ps; the workers read them and send gradients.

Asynchronous (`--sync_replicas=False`): every worker applies its gradients as soon as it has them.

Synchronous: a step is one step of all workers. Every ps accumulates the gradients of its variables (`_Accumulator`).
When all workers have sent theirs, the chief takes the means, applies them, and puts a token for the next step into the
queue of every worker. A worker at the end of its data sends gradients of weight 0; when all workers have weight 0 the
chief closes the queues, and that is the end of the data for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.optimizer.wrappers.wrapper import flush_op, leave_op
from moxing.tensorflow.parallel.cluster_worker import ClusterWorker, run_one_of, run_variable
from moxing.tensorflow.parallel.devices import device_function
from moxing.tensorflow.parallel.gradients import GradientPairs, flatten, normalize_weights
from moxing.tensorflow.parallel.loss_scale import LossScale, make_loss_scale
from moxing.tensorflow.parallel.optimizers import UpdateOptions, clip_and_apply, make_optimizer
from moxing.tensorflow.parallel.strategy import Strategy, StrategyContext, register_strategy
from moxing.tensorflow.parallel.train_step import TrainSetup, TrainStep
from moxing.tf1.graph.towers import ReplaceVariable

#: Variables of at least this size are partitioned over all ps, so that no ps sends and receives one alone.
_LARGE_BYTES = 32 << 20

#: A token is the step times this, plus the value of `TrainStep.halt`.
_TOKEN = 4

#: A gradient is never too old: no worker can be ahead of another.
_NEVER_OLD = tf.int64.max


@register_strategy("parameter_server", "distributed_replicated", cluster=True)
class ParameterServer(ClusterWorker):
    """Variables on the ps, each on the one with the fewest bytes when it is created.

    Args:
      devices: the devices of this process, one for every tower.
      workers: number of workers.
      index: index of this worker.
      run: number of the run in this process.
      servers: number of ps.
      synchronous: `--sync_replicas`.
    """

    def __init__(
        self, devices: Sequence[str], workers: int, index: int, run: int, servers: int, synchronous: bool
    ) -> None:
        super().__init__(devices, workers, index, run)
        self.synchronous = synchronous
        self._bytes = [0] * servers
        self._stop: tf.Variable | None = None

    @classmethod
    def create(cls, context: StrategyContext) -> Strategy:
        role = context.role
        if not role.ps:
            raise FlagError(
                f"--variable_update={context.name} needs parameter servers: give --ps_hosts, or use collective."
            )
        workers, servers = role.num_workers, len(role.ps)
        return cls(context.devices, workers, role.index, context.run, servers, FLAGS.get("sync_replicas"))

    @property
    def owns_variables(self) -> bool:
        return self.is_chief

    def device_for(self, device: str) -> Callable[[tf.Operation], str]:
        return device_function(device, self._least_loaded)

    @contextmanager
    def tower_scope(self, index: int) -> Iterator[None]:
        with super().tower_scope(index), self._variable_getter():
            yield

    @contextmanager
    def evaluation_scope(self, scope: str, instead: ReplaceVariable) -> Iterator[list[tf.Variable]]:
        with super().evaluation_scope(scope, instead) as own, self._variable_getter():
            yield own

    def _variable_getter(self) -> AbstractContextManager[Any]:
        scope = tf.get_variable_scope()
        return tf.variable_scope(scope, custom_getter=self._get_variable, auxiliary_name_scope=False)

    def _get_variable(
        self, getter: Callable[..., Any], name: str, regularizer: Any = None, partitioner: Any = None, **kwargs: Any
    ) -> Any:
        """A custom getter for `tf.get_variable`: partitions large variables, keeps regularizers on the worker."""

        def on_worker(variable: Any) -> Any:
            # On the ps of the variable, its value would be sent to the worker and back.
            with tf.colocate_with(None, ignore_existing=True), self.local_device():
                return regularizer(variable)

        if partitioner is None and self._is_large(kwargs.get("shape"), kwargs.get("dtype")):
            partitioner = tf.fixed_size_partitioner(len(self._bytes))
        return getter(name, regularizer=None if regularizer is None else on_worker, partitioner=partitioner, **kwargs)

    def _is_large(self, shape: Any, dtype: Any) -> bool:
        shape = tf.TensorShape(shape)
        if not shape.rank or not shape.is_fully_defined() or not 1 < len(self._bytes) <= shape.as_list()[0]:
            return False
        return shape.num_elements() * tf.as_dtype(dtype or tf.float32).size >= _LARGE_BYTES

    def create_variable(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        if arguments.get("trainable"):
            # The value comes over the network once a step, however often the model reads it.
            arguments["caching_device"] = arguments.get("caching_device") or f"{self.task}/cpu:0"
        return super().create_variable(create, **arguments)

    def train_op(self, setup: TrainSetup) -> TrainStep:
        optimizers = [make_optimizer(function) for function in setup.optimizer_fns]
        scale = make_loss_scale()
        weight = self.total_weight(setup.towers)
        shares = normalize_weights([tower.weight for tower in setup.towers])
        groups = self.worker_gradients(setup.towers, optimizers, scale, shares)
        if self.synchronous:
            return self._synchronous_step(setup, optimizers, groups, weight, scale)
        return self._asynchronous_step(setup, optimizers, groups, scale)

    def sync_ops(self) -> list[tf.Operation]:
        return [self._stop.initializer] if self._stop is not None and self.is_chief else []

    def request_stop(self, session: tf.Session, why: int) -> None:
        if self._stop is not None:
            session.run(self._request, {self._why: why})

    def configure(self, config: tf.ConfigProto) -> None:
        # The session ignores what happens to other workers.
        config.device_filters.extend(["/job:ps", self.task])

    def _least_loaded(self, operation: tf.Operation) -> str:
        shape = tf.TensorShape(operation.get_attr("shape"))
        size = (shape.num_elements() or 0) * tf.as_dtype(operation.get_attr("dtype")).size
        server = self._bytes.index(min(self._bytes))
        # The constant is for the message that even a small variable costs.
        self._bytes[server] += size + 1024
        return f"/job:ps/task:{server}/cpu:0"

    def _asynchronous_step(
        self, setup: TrainSetup, optimizers: Sequence[Any], groups: list[GradientPairs], scale: LossScale | None
    ) -> TrainStep:
        global_step = setup.global_step
        counts = self.is_chief or not FLAGS.get("chief_inc_global_step")
        options = UpdateOptions(advance_global_step=counts)
        with self.step_weight(self.step_samples(setup.towers, optimizers), setup.batch_size):
            before = [*setup.before, *flatten(groups)]
            applied = clip_and_apply(optimizers, groups, scale, before, global_step, options)
        with tf.control_dependencies([applied]):
            # In every step: other workers can bring global_step to its end while this one is inside its loop.
            reached = tf.cast(global_step.read_value() >= setup.max_steps, tf.int32)
        op = tf.group(applied, reached, name="train_op")
        return TrainStep(op, optimizers, groups, flush_op(optimizers), leave_op(optimizers), reached=reached)

    def _synchronous_step(
        self,
        setup: TrainSetup,
        optimizers: Sequence[Any],
        groups: Sequence[GradientPairs],
        weight: tf.Tensor | None,
        scale: LossScale | None,
    ) -> TrainStep:
        queues = self._create_queues()
        accumulators = [
            [
                _Accumulator(gradient, variable, f"{self.shared}/{loss}/{index}")
                for index, (gradient, variable) in enumerate(group)
            ]
            for loss, group in enumerate(groups)
        ]
        weights = None if weight is None else _Accumulator(weight, setup.global_step, f"{self.shared}/weight")
        with tf.control_dependencies(setup.before):
            sent = [accumulator.send(weight) for group in accumulators for accumulator in group]
            if weights is not None:
                sent.append(weights.send(None))
        means: list[GradientPairs] = []
        if self.is_chief:
            mean_weight = None if weights is None else weights.mean(self.num_workers)
            # The samples of one worker, as the mean weight is a mean over workers.
            with tf.control_dependencies(setup.before), self.step_weight(mean_weight, setup.batch_size):
                means = [
                    [(each.mean(self.num_workers, mean_weight), each.variable) for each in group]
                    for group in accumulators
                ]
                sent.append(self._apply_means(optimizers, means, mean_weight, scale, setup.global_step, queues))
        with tf.control_dependencies(sent):
            token = queues[self.worker_index].dequeue(name="token")
        halt = tf.cast(token % _TOKEN, tf.int32)
        op = tf.group(halt, name="train_op")
        applying = optimizers if self.is_chief else []
        return TrainStep(op, applying, means, flush_op(applying), halt=halt)

    def _create_queues(self) -> list[tf.FIFOQueue]:
        """A queue of tokens for every worker, and the variable for requests to stop, all on the first ps."""
        with tf.device("/job:ps/task:0/cpu:0"):
            self._stop = run_variable(f"{self.shared}/stop")
            self._why = tf.placeholder(tf.int64, [])
            self._request = tf.assign(self._stop, tf.maximum(self._stop, self._why)).op
            return [
                tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f"{self.shared}/tokens/{worker}", name="tokens")
                for worker in range(self.num_workers)
            ]

    def _apply_means(
        self,
        optimizers: Sequence[Any],
        groups: Sequence[GradientPairs],
        mean_weight: tf.Tensor | None,
        scale: LossScale | None,
        global_step: tf.Variable,
        queues: Sequence[tf.FIFOQueue],
    ) -> tf.Operation:
        """On the chief: applies the means of all workers' gradients, then gives every worker a token."""

        def go_on() -> tf.Operation:
            applied = clip_and_apply(optimizers, groups, scale, flatten(groups), global_step)
            with tf.control_dependencies([applied]):
                token = global_step.read_value() * _TOKEN + self._stop.read_value()  # type: ignore[union-attr]
            return tf.group(*[queue.enqueue(token) for queue in queues])

        if mean_weight is None:
            return go_on()

        def end() -> tf.Operation:
            return tf.group(*[queue.close() for queue in queues])

        return run_one_of(mean_weight > 0, go_on, end)


class _Accumulator:
    """Accumulates the workers' gradients of one variable, on the ps of the variable.

    Args:
      gradient: the gradient of this worker.
      variable: the variable.
      name: name of the shared resource, the same on all workers.
    """

    def __init__(self, gradient: Any, variable: tf.Variable, name: str) -> None:
        # TensorFlow has no accumulator for sparse gradients that works inside a loop.
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

    def mean(self, workers: int, mean_weight: tf.Tensor | None = None) -> tf.Tensor:
        """The mean over the workers, once all have sent, divided by their mean weight."""
        mean = tf.raw_ops.ResourceAccumulatorTakeGradient(
            handle=self._accumulator, num_required=workers, dtype=self._gradient.dtype
        )
        mean.set_shape(self._gradient.shape)
        if mean_weight is None:
            return mean
        with tf.device(self.variable.device):
            # On the ps: the mean would be sent to the chief and back otherwise.
            return mean / tf.cast(tf.maximum(mean_weight, 1e-30), mean.dtype)
