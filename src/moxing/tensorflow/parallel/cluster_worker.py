"""The base class of strategies for the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.parallel.gradients import GradientPairs, sum_gradients
from moxing.tensorflow.parallel.loss_scale import LossScale
from moxing.tensorflow.parallel.strategy import Strategy, StrategyContext
from moxing.tensorflow.parallel.train_step import Tower
from moxing.tf1.graph.towers import ReplaceVariable


class ClusterWorker(Strategy):
    """A worker of a cluster.

    Args:
      devices: the devices of this process, one for every tower.
      workers: number of workers.
      index: index of this worker.
      run: number of the run in this process, the same on all workers. It is part of the names of shared resources.

    Attributes:
      task: device prefix of this process.
      shared: prefix of the names of resources that the workers share.
    """

    def __init__(self, devices: Sequence[str], workers: int, index: int, run: int) -> None:
        super().__init__(devices)
        self.num_workers, self.worker_index = workers, index
        self.task = f"/job:worker/task:{index}"
        self.shared = f"moxing/run_{run}"

    @classmethod
    def create(cls, context: StrategyContext) -> Strategy:
        return cls(context.devices, context.role.num_workers, context.role.index, context.run)

    @contextmanager
    def scope(self) -> Iterator[None]:
        with tf.device(self.device_for(f"{self.task}/cpu:0")):
            yield

    @contextmanager
    def local_device(self) -> Iterator[None]:
        with tf.device(f"{self.task}/cpu:0"):
            yield

    @contextmanager
    def tower_scope(self, index: int) -> Iterator[None]:
        with super().tower_scope(index), tf.variable_creator_scope(self.create_variable):
            yield

    @contextmanager
    def evaluation_scope(self, scope: str, instead: ReplaceVariable) -> Iterator[list[tf.Variable]]:
        with super().evaluation_scope(scope, instead) as own, tf.variable_creator_scope(self.create_variable):
            yield own

    def tower_device(self, index: int) -> Callable[[tf.Operation], str]:
        return self.device_for(f"{self.task}{self.devices[index]}")

    def device_for(self, device: str) -> Callable[[tf.Operation], str]:
        """A device function for operations on `device` and the variables that they use."""
        raise NotImplementedError

    def worker_gradients(
        self, towers: Sequence[Tower], optimizers: Sequence[Any], scale: LossScale | None, shares: Sequence[Any]
    ) -> list[GradientPairs]:
        """For every loss the sum of the gradients of this worker's towers, each multiplied by its share."""
        gradients = self.tower_gradients(towers, optimizers, scale, shares, spread=True)
        return sum_gradients(gradients, [1.0] * len(towers))

    @staticmethod
    def total_weight(towers: Sequence[Tower]) -> tf.Tensor | None:
        """Number of samples of this worker's towers. None: every worker has the same number."""
        weights = [tf.cast(tower.weight, tf.float32) for tower in towers if tower.weight is not None]
        return tf.add_n(weights) if weights else None

    def create_variable(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        """A variable creator that places local variables, such as those of metrics, in the worker itself."""
        if tf.GraphKeys.LOCAL_VARIABLES in (arguments.get("collections") or []):
            with self.local_device():
                return create(**arguments)
        return create(**arguments)


def run_variable(name: str, dtype: tf.DType = tf.int64) -> tf.Variable:
    """A scalar variable of the run, initially 0, that is in no checkpoint."""
    with tf.variable_scope(tf.VariableScope(reuse=tf.AUTO_REUSE), auxiliary_name_scope=False):
        return tf.get_variable(
            name, [], dtype, initializer=tf.zeros_initializer(), trainable=False, collections=["moxing/own"]
        )


def run_one_of(
    condition: tf.Tensor, if_true: Callable[[], tf.Operation], if_false: Callable[[], tf.Operation]
) -> tf.Operation:
    """`tf.cond` for functions that return operations."""

    def as_tensor(build: Callable[[], tf.Operation]) -> Callable[[], tf.Tensor]:
        def built() -> tf.Tensor:
            with tf.control_dependencies([build()]):
                return tf.constant(0)

        return built

    return tf.cond(condition, as_tensor(if_true), as_tensor(if_false)).op
