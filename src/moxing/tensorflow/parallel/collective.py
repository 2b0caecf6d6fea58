"""`collective`: no ps; every worker has all variables, and the workers add up their gradients around a ring.

Small gradients are packed into a few large tensors, in the order in which the backward pass makes them, so that the
first ones travel while the last ones are still computed. Every worker then applies the same mean, and all stay equal. A
worker whose data has ended takes part with weight 0; when all have ended, that is the end of the data for everyone.

The workers add up over connections of their own. On GPUs, and where there are none, TensorFlow's collective operations
do it. They tell one addition from the next by the `session.run` and the round of the loop in it: all must do the
same number of steps in every call, and the chief says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster.ring import Ring
from moxing.tensorflow.parallel.cluster_worker import ClusterWorker, number, one_of
from moxing.tensorflow.parallel.devices import placed
from moxing.tensorflow.parallel.gradients import GradientPairs, flat
from moxing.tensorflow.parallel.loss_scale import loss_scale
from moxing.tensorflow.parallel.optimizers import clipped_and_applied, made
from moxing.tensorflow.parallel.strategy import HOOK, SIGNAL, Tower

#: Bytes of gradients that travel as one: a message by itself takes about as long as a megabyte.
_PACK_BYTES = 8 << 20
#: From this size on a gradient travels alone.
_LARGE_BYTES = 2 << 20
_GROUP = 1

#: What a worker that was sent a signal adds to the sum of wishes to stop: more than all hooks together.
_SIGNALLED = 1e6

#: What a sum of 32-bit floating-point numbers holds exactly.
_MOST_STEPS = 1 << 20


Connect = Callable[[], Ring | None]


def not_connected() -> None:
    """Where nothing connects the workers but TensorFlow's servers."""


class Collective(ClusterWorker):
    """Variables on every worker, gradients added up around a ring.

    Args:
      devices: where its towers stand, within this process.
      workers: how many workers there are.
      index: which one this is.
      run: number of the run in this process.
      connect: connects the workers. Without it, and for gradients on GPUs, TensorFlow's collective operations add up.
    """

    in_step = True
    #: `--gradient_clip` is about the mean of all workers.
    clips_mean = True
    #: Also gradients that are computed on GPUs go around the ring, and not through NCCL.
    always_by_ring = False

    def __init__(
        self, devices: Sequence[str], workers: int, index: int, run: int, connect: Connect = not_connected
    ) -> None:
        super().__init__(devices, workers, index, run)
        self._connect = connect
        self._ring: Ring | None = None
        self._last_sum: list[tf.Operation] = []
        # An operation is the same one on all workers by its number, which must not come twice in a process.
        self._instance = run * 1_000_000
        self._stop: tf.Variable | None = None
        self._proposed = 0

    def placed_on(self, device: str) -> Callable[[tf.Operation], str]:
        return placed(device, f"{self.task}/cpu:0")

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        self.optimizers = optimizers = [made(function) for function in optimizer_fns]
        scale = loss_scale()
        if self.always_by_ring or all(device.startswith("/cpu") for device in self.devices):
            self._ring = self._connect()
        with self.local():
            self._stop = number(f"{self.shared}/stop", tf.float32)
            self._proposal = number(f"{self.shared}/proposal", tf.float32)
            self._value = tf.placeholder(tf.float32, [])
            self._set_stop = tf.assign(self._stop, self._value).op
            self._set_proposal = tf.assign(self._proposal, self._value).op
        weight = self.weight(towers)
        own = tf.constant(0.0) if weight is None else weight
        # Known before the gradients are: each is computed with its share already, and the sum is the mean.
        agreed = tf.stack([own, self._stop.read_value(), self._proposal.read_value()])
        total, stops, steps = tf.unstack(self._sum(agreed))
        shares = [self._share(tower, total) for tower in towers]
        self.applied = groups = self._summed(self.gradients(towers, optimizers, scale, shares))
        everything = flat(groups)

        def apply() -> tf.Operation:
            before_it = [*before, *everything]
            with self.counted(None if weight is None else total, self.workers):
                return clipped_and_applied(optimizers, groups, scale, before_it, global_step, clips=self.clips_mean)

        # An addition that is under way when the data ends would be broken off, on the other workers too.
        with tf.control_dependencies(everything):
            done = apply() if weight is None else self._unless_ended(total, apply)
        with tf.control_dependencies([done]):
            reason = tf.where(stops < _SIGNALLED, HOOK, SIGNAL)
            self.halt = tf.where(stops > 0, reason, 0)
            self.next_steps = tf.cast(tf.maximum(steps, 1.0), tf.int64)
        return tf.group(self.halt, self.next_steps, done, name="train_op")

    def ready(self) -> list[tf.Operation]:
        """All workers take the chief's variables."""
        own = [] if self._stop is None else [self._stop.initializer, self._proposal.initializer]
        return [*own, *(self._from_chief(variable) for variable in tf.global_variables())]

    def request_stop(self, session: tf.Session, why: int) -> None:
        if self._stop is not None:
            session.run(self._set_stop, {self._value: 1.0 if why == HOOK else _SIGNALLED})

    def propose(self, session: tf.Session, steps: int) -> None:
        proposed = min(steps, _MOST_STEPS)
        if self.is_chief and proposed != self._proposed:
            self._proposed = proposed
            session.run(self._set_proposal, {self._value: proposed})

    def configure(self, config: tf.ConfigProto) -> None:
        lead_collectives(config)

    def _unless_ended(self, total: tf.Tensor, apply: Callable[[], tf.Operation]) -> tf.Operation:
        """Applies the step; where no worker had data, it is the end of the data instead."""
        gate = tf.FIFOQueue(1, [tf.int64], [[]], shared_name=f"{self.shared}/gate", name="gate")

        def go_on() -> tf.Operation:
            with tf.control_dependencies([apply()]):
                return gate.enqueue(tf.constant(0, tf.int64))

        with tf.control_dependencies([one_of(total > 0, go_on, gate.close)]):
            # From a closed queue this is the end of the data.
            return gate.dequeue().op

    def _share(self, tower: Tower, total: tf.Tensor) -> Any:
        if tower.weight is None:
            return 1 / (self.workers * self.towers)
        return tf.cast(tower.weight, tf.float32) / tf.maximum(total, 1.0)

    def _summed(self, groups: Sequence[GradientPairs]) -> list[GradientPairs]:
        """The sum of all workers' gradients, in the arrangement of `groups`."""
        gradients = [tf.convert_to_tensor(gradient) for gradient in flat(groups)]
        sums: dict[int, tf.Tensor] = {}
        for pack in _packs(gradients):
            if len(pack) == 1:
                sums[pack[0]] = self._sum(gradients[pack[0]])
                continue
            whole = self._sum(tf.concat([tf.reshape(gradients[place], [-1]) for place in pack], 0))
            sizes = [gradients[place].shape.num_elements() for place in pack]
            for place, part in zip(pack, tf.split(whole, sizes), strict=True):
                sums[place] = tf.reshape(part, gradients[place].shape)
        places = iter(range(len(gradients)))
        return [[(sums[next(places)], variable) for _, variable in group] for group in groups]

    def _sum(self, tensor: tf.Tensor) -> tf.Tensor:
        if self._ring is not None:
            return self._sum_around(self._ring, tensor)
        self._instance += 1
        result = tf.raw_ops.CollectiveReduce(
            input=tensor,
            group_size=self.workers,
            group_key=_GROUP,
            instance_key=self._instance,
            merge_op="Add",
            final_op="Id",
            subdiv_offsets=[0],
        )
        result.set_shape(tensor.shape)
        return result

    def _sum_around(self, ring: Ring, tensor: tf.Tensor) -> tf.Tensor:
        # In the same order on all workers: nothing but that says what is added to what.
        with self.local(), tf.control_dependencies(self._last_sum):
            result = tf.numpy_function(ring.add, [tensor], tensor.dtype)
        self._last_sum = [result.op]
        result.set_shape(tensor.shape)
        return result

    def _from_chief(self, variable: tf.Variable) -> tf.Operation:
        self._instance += 1
        what = {"group_size": self.workers, "group_key": _GROUP, "instance_key": self._instance}
        shape = variable.shape
        with self.local():
            if self.is_chief:
                value = variable.read_value()
                return tf.raw_ops.CollectiveBcastSend(input=value, shape=shape, **what).op
            value = tf.raw_ops.CollectiveBcastRecv(T=variable.dtype.base_dtype, shape=shape, **what)
            return tf.assign(variable, value).op


def lead_collectives(config: tf.ConfigProto) -> None:
    """Lets the chief lead the collective operations of a server or session.

    Example:
      >>> config = tf.ConfigProto()
      >>> lead_collectives(config)
      >>> config.experimental.collective_group_leader
      '/job:worker/replica:0/task:0'
    """
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"


def _packs(gradients: Sequence[tf.Tensor]) -> Iterator[list[int]]:
    """The places of gradients that travel together, those of the last layers first: they are there first.

    Large ones travel alone, since packing copies them.
    """
    pack: list[int] = []
    size = 0
    for place in reversed(range(len(gradients))):
        gradient = gradients[place]
        bytes_ = gradient.shape.num_elements() * gradient.dtype.size
        if bytes_ >= _LARGE_BYTES:
            yield [place]
            continue
        if pack and (size + bytes_ > _PACK_BYTES or gradient.dtype != gradients[pack[0]].dtype):
            yield pack
            pack, size = [], 0
        pack.append(place)
        size += bytes_
    if pack:
        yield pack
