"""`collective`: no ps; every worker has all variables, and an all-reduce averages the gradients of all workers.

`Collective.train_op` is where gradients of several workers are averaged: every worker multiplies its gradients by its
share of all samples, `_all_reduce_gradients` adds them up, and every worker applies the same mean.

Small gradients are packed into buckets, in the order in which the backward pass computes them, so that the first
buckets are sent while the last gradients are still computed. A worker at the end of its data takes part with weight 0;
when all workers have weight 0, that is the end of the data for all.

The all-reduce goes around a ring of direct connections (`cluster/ring.py`). On GPUs, and where the ring cannot be
connected, TensorFlow's collective operations do it. They match calls by the `session.run` and the loop iteration in it:
all workers must do the same number of steps in every call, and the chief decides how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.cluster.ring import Ring
from moxing.tensorflow.optimizer.wrappers.wrapper import flush_op
from moxing.tensorflow.parallel.cluster_worker import ClusterWorker, run_one_of, run_variable
from moxing.tensorflow.parallel.devices import device_function
from moxing.tensorflow.parallel.gradients import GradientPairs, flatten
from moxing.tensorflow.parallel.loss_scale import make_loss_scale
from moxing.tensorflow.parallel.optimizers import UpdateOptions, clip_and_apply, make_optimizer
from moxing.tensorflow.parallel.strategy import ConnectRing, Strategy, StrategyContext, no_ring, register_strategy
from moxing.tensorflow.parallel.train_step import HOOK, SIGNAL, Tower, TrainSetup, TrainStep

#: Largest bucket in bytes: the overhead of a message is about the time of one megabyte.
_BUCKET_BYTES = 8 << 20
#: Gradients of at least this size are sent without a bucket.
_LARGE_BYTES = 2 << 20
_GROUP = 1

#: What a worker with a signal adds to the sum of stop requests: more than all hooks together.
_SIGNAL_REQUEST = 1e6

#: The largest number of steps that a float32 sum holds exactly, with a margin.
_MAX_STEPS_PER_CALL = 1 << 20


@register_strategy("collective", cluster=True)
class Collective(ClusterWorker):
    """Variables on every worker; gradients are averaged by an all-reduce.

    Args:
      devices: the devices of this process, one for every tower.
      workers: number of workers.
      index: index of this worker.
      run: number of the run in this process.
      connect_ring: connects all workers to a ring. Without it, and for gradients on GPUs, TensorFlow's collective
        operations are used.
    """

    synchronous = True
    #: `--gradient_clip` applies to the mean of all workers.
    clips_mean = True
    #: Gradients that are computed on GPUs go around the ring too, and not through NCCL.
    always_by_ring = False

    def __init__(
        self, devices: Sequence[str], workers: int, index: int, run: int, connect_ring: ConnectRing = no_ring
    ) -> None:
        super().__init__(devices, workers, index, run)
        self._connect_ring = connect_ring
        self._ring: Ring | None = None
        self._last_reduce: list[tf.Operation] = []
        # Instance keys match the operations of all workers; a key must not be used twice in a process.
        self._instance_key = run * 1_000_000
        self._stop: tf.Variable | None = None
        self._proposed = 0

    @classmethod
    def create(cls, context: StrategyContext) -> Strategy:
        if not FLAGS.get("sync_replicas"):
            raise FlagError("--sync_replicas=False needs parameter servers: collective workers are synchronous.")
        role = context.role
        return cls(context.devices, role.num_workers, role.index, context.run, context.connect_ring)

    def device_for(self, device: str) -> Callable[[tf.Operation], str]:
        return device_function(device, f"{self.task}/cpu:0")

    def train_op(self, setup: TrainSetup) -> TrainStep:
        towers = setup.towers
        optimizers = [make_optimizer(function) for function in setup.optimizer_fns]
        scale = make_loss_scale()
        if self.always_by_ring or all(device.startswith("/cpu") for device in self.devices):
            self._ring = self._connect_ring()
        self._create_requests()
        weight = self.total_weight(towers)
        total, stops, steps = self._all_reduce_requests(tf.constant(0.0) if weight is None else weight)
        # The total weight is known before the gradients: each is computed with its share, and the sum is the mean.
        shares = [self._share(tower, total) for tower in towers]
        groups = self._all_reduce_gradients(self.worker_gradients(towers, optimizers, scale, shares))
        reduced = flatten(groups)

        def apply() -> tf.Operation:
            before, options = [*setup.before, *reduced], UpdateOptions(clip=self.clips_mean)
            with self.step_weight(None if weight is None else total, setup.batch_size, self.num_workers):
                return clip_and_apply(optimizers, groups, scale, before, setup.global_step, options)

        # The end of the data must not interrupt an all-reduce: it would fail on the other workers too.
        with tf.control_dependencies(reduced):
            applied = apply() if weight is None else self._unless_ended(total, apply)
        with tf.control_dependencies([applied]):
            reason = tf.where(stops < _SIGNAL_REQUEST, HOOK, SIGNAL)
            halt = tf.where(stops > 0, reason, 0)
            next_steps = tf.cast(tf.maximum(steps, 1.0), tf.int64)
        op = tf.group(halt, next_steps, applied, name="train_op")
        return TrainStep(op, optimizers, groups, flush_op(optimizers), halt=halt, next_steps=next_steps)

    def sync_ops(self) -> list[tf.Operation]:
        """All workers take the chief's variables."""
        own = [] if self._stop is None else [self._stop.initializer, self._proposal.initializer]
        return [*own, *(self._broadcast_from_chief(variable) for variable in tf.global_variables())]

    def request_stop(self, session: tf.Session, why: int) -> None:
        if self._stop is not None:
            session.run(self._set_stop, {self._value: 1.0 if why == HOOK else _SIGNAL_REQUEST})

    def propose(self, session: tf.Session, steps: int) -> None:
        proposed = min(steps, _MAX_STEPS_PER_CALL)
        if self.is_chief and proposed != self._proposed:
            self._proposed = proposed
            session.run(self._set_proposal, {self._value: proposed})

    def configure(self, config: tf.ConfigProto) -> None:
        set_collective_leader(config)

    def _create_requests(self) -> None:
        """Variables for stop requests and proposed numbers of steps, which every step adds up over all workers."""
        with self.local_device():
            self._stop = run_variable(f"{self.shared}/stop", tf.float32)
            self._proposal = run_variable(f"{self.shared}/proposal", tf.float32)
            self._value = tf.placeholder(tf.float32, [])
            self._set_stop = tf.assign(self._stop, self._value).op
            self._set_proposal = tf.assign(self._proposal, self._value).op

    def _all_reduce_requests(self, weight: tf.Tensor) -> list[tf.Tensor]:
        """Sums over all workers: weight, stop requests, proposed number of steps."""
        own = tf.stack([weight, self._stop.read_value(), self._proposal.read_value()])  # type: ignore[union-attr]
        return list(tf.unstack(self._all_reduce(own)))

    def _unless_ended(self, total: tf.Tensor, apply: Callable[[], tf.Operation]) -> tf.Operation:
        """Applies the step; if no worker had data, raises the end of the data instead."""
        gate = tf.FIFOQueue(1, [tf.int64], [[]], shared_name=f"{self.shared}/gate", name="gate")

        def go_on() -> tf.Operation:
            with tf.control_dependencies([apply()]):
                return gate.enqueue(tf.constant(0, tf.int64))

        with tf.control_dependencies([run_one_of(total > 0, go_on, gate.close)]):
            # Dequeuing from a closed queue raises OutOfRangeError, as the end of a dataset does.
            return gate.dequeue().op

    def _share(self, tower: Tower, total: tf.Tensor) -> Any:
        if tower.weight is None:
            return 1 / (self.num_workers * self.num_towers)
        return tf.cast(tower.weight, tf.float32) / tf.maximum(total, 1.0)

    def _all_reduce_gradients(self, groups: Sequence[GradientPairs]) -> list[GradientPairs]:
        """The sum of all workers' gradients, in the structure of `groups`."""
        gradients = [tf.convert_to_tensor(gradient) for gradient in flatten(groups)]
        sums: dict[int, tf.Tensor] = {}
        for bucket in _buckets(gradients):
            if len(bucket) == 1:
                sums[bucket[0]] = self._all_reduce(gradients[bucket[0]])
                continue
            packed = self._all_reduce(tf.concat([tf.reshape(gradients[index], [-1]) for index in bucket], 0))
            sizes = [gradients[index].shape.num_elements() for index in bucket]
            for index, part in zip(bucket, tf.split(packed, sizes), strict=True):
                sums[index] = tf.reshape(part, gradients[index].shape)
        indices = iter(range(len(gradients)))
        return [[(sums[next(indices)], variable) for _, variable in group] for group in groups]

    def _all_reduce(self, tensor: tf.Tensor) -> tf.Tensor:
        """The sum of a tensor over all workers."""
        if self._ring is not None:
            return self._ring_all_reduce(self._ring, tensor)
        self._instance_key += 1
        result = tf.raw_ops.CollectiveReduce(
            input=tensor,
            group_size=self.num_workers,
            group_key=_GROUP,
            instance_key=self._instance_key,
            merge_op="Add",
            final_op="Id",
            subdiv_offsets=[0],
        )
        result.set_shape(tensor.shape)
        return result

    def _ring_all_reduce(self, ring: Ring, tensor: tf.Tensor) -> tf.Tensor:
        # The order of the calls, which must be the same on all workers, is all that tells them apart.
        with self.local_device(), tf.control_dependencies(self._last_reduce):
            result = tf.numpy_function(ring.all_reduce, [tensor], tensor.dtype)
        self._last_reduce = [result.op]
        result.set_shape(tensor.shape)
        return result

    def _broadcast_from_chief(self, variable: tf.Variable) -> tf.Operation:
        self._instance_key += 1
        keys = {"group_size": self.num_workers, "group_key": _GROUP, "instance_key": self._instance_key}
        shape = variable.shape
        with self.local_device():
            if self.is_chief:
                value = variable.read_value()
                return tf.raw_ops.CollectiveBcastSend(input=value, shape=shape, **keys).op
            value = tf.raw_ops.CollectiveBcastRecv(T=variable.dtype.base_dtype, shape=shape, **keys)
            return tf.assign(variable, value).op


def set_collective_leader(config: tf.ConfigProto) -> None:
    """Makes the chief the leader of the collective operations of a server or session.

    Example:
      >>> config = tf.ConfigProto()
      >>> set_collective_leader(config)
      >>> config.experimental.collective_group_leader
      '/job:worker/replica:0/task:0'
    """
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"


def _buckets(gradients: Sequence[tf.Tensor]) -> Iterator[list[int]]:
    """The indices of gradients that are sent together. The last layers come first: their gradients are computed first.

    Large gradients are sent alone, since packing copies them.
    """
    bucket: list[int] = []
    size = 0
    for index in reversed(range(len(gradients))):
        gradient = gradients[index]
        gradient_bytes = gradient.shape.num_elements() * gradient.dtype.size
        if gradient_bytes >= _LARGE_BYTES:
            yield [index]
            continue
        if bucket and (size + gradient_bytes > _BUCKET_BYTES or gradient.dtype != gradients[bucket[0]].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(index)
        size += gradient_bytes
    if bucket:
        yield bucket
