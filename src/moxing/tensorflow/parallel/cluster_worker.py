"""What the strategies of a cluster's workers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.parallel.gradients import GradientPairs, combined
from moxing.tensorflow.parallel.loss_scale import LossScale
from moxing.tensorflow.parallel.strategy import Strategy, Tower
from moxing.tf1.towers import Instead


class ClusterWorker(Strategy):
    """A worker of a cluster.

    Args:
      devices: where its towers stand, within this process.
      workers: how many workers there are.
      index: which one this is.
      run: number of the run in this process, the same on all workers: names of what they share contain it.
    """

    def __init__(self, devices: Sequence[str], workers: int, index: int, run: int) -> None:
        super().__init__(devices)
        self.workers, self.index = workers, index
        self.task = f"/job:worker/task:{index}"
        self.shared = f"moxing/run_{run}"

    @contextmanager
    def scope(self) -> Iterator[None]:
        with tf.device(self.placed_on(f"{self.task}/cpu:0")):
            yield

    @contextmanager
    def local(self) -> Iterator[None]:
        with tf.device(f"{self.task}/cpu:0"):
            yield

    @contextmanager
    def tower(self, index: int) -> Iterator[None]:
        with super().tower(index), tf.variable_creator_scope(self.create):
            yield

    @contextmanager
    def beside(self, scope: str, instead: Instead) -> Iterator[list[tf.Variable]]:
        with super().beside(scope, instead) as own, tf.variable_creator_scope(self.create):
            yield own

    def place(self, index: int) -> Callable[[tf.Operation], str]:
        return self.placed_on(f"{self.task}{self.devices[index]}")

    def placed_on(self, device: str) -> Callable[[tf.Operation], str]:
        """A device function for operations that go to `device`, and the variables that they use."""
        raise NotImplementedError

    def gradients(
        self, towers: Sequence[Tower], optimizers: Sequence[Any], scale: LossScale, shares: Sequence[Any]
    ) -> list[GradientPairs]:
        """For every loss the sum of the gradients of this worker's towers, each multiplied by its share."""
        gradients = self.gradients_of_towers(towers, optimizers, scale, shares, spread=True)
        return combined(gradients, [1.0] * len(towers))

    @staticmethod
    def weight(towers: Sequence[Tower]) -> tf.Tensor | None:
        """How many samples all towers of this worker have; None: as many as those of every other worker."""
        weights = [tf.cast(tower.weight, tf.float32) for tower in towers if tower.weight is not None]
        return tf.add_n(weights) if weights else None

    def create(self, create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        """Variables that the user keeps out of checkpoints, such as those of metrics, are each worker's own."""
        if tf.GraphKeys.LOCAL_VARIABLES in (arguments.get("collections") or []):
            with self.local():
                return create(**arguments)
        return create(**arguments)


def number(name: str, dtype: tf.DType = tf.int64) -> tf.Variable:
    """A number of the run's own, beginning with 0, that is in no checkpoint."""
    with tf.variable_scope(tf.VariableScope(reuse=tf.AUTO_REUSE), auxiliary_name_scope=False):
        return tf.get_variable(
            name, [], dtype, initializer=tf.zeros_initializer(), trainable=False, collections=["moxing/own"]
        )


def one_of(condition: tf.Tensor, first: Callable[[], tf.Operation], second: Callable[[], tf.Operation]) -> tf.Operation:
    """Runs the operation that `first` builds where the condition is true, else that of `second`."""

    def as_number(build: Callable[[], tf.Operation]) -> Callable[[], tf.Tensor]:
        def built() -> tf.Tensor:
            with tf.control_dependencies([build()]):
                return tf.constant(0)

        return built

    return tf.cond(condition, as_number(first), as_number(second)).op
