"""`parameter_server` in one process: the towers share their variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.parallel.devices import parameter_device, placed
from moxing.tensorflow.parallel.gradients import averaged, flat
from moxing.tensorflow.parallel.loss_scale import loss_scale
from moxing.tensorflow.parallel.optimizers import clipped_and_applied, made
from moxing.tensorflow.parallel.strategy import Strategy, Tower


class Local(Strategy):
    """Variables in one place; the mean of the towers' gradients is applied to them once.

    Args:
      devices: where the towers stand.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        super().__init__(devices)
        self._parameters = parameter_device()

    def place(self, index: int) -> Callable[[tf.Operation], str]:
        if self.towers == 1:
            # One device, and TensorFlow knows best which operations it has.
            device = "/cpu:0" if FLAGS.get("clone_on_cpu") else ""
            return placed(device, f"/{self._parameters}:0" if self._parameters else device)
        return placed(self.devices[index], f"/{self._parameters or 'cpu'}:0")

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        """One step: all gradients, then all updates, then `global_step` once."""
        optimizers = [made(function) for function in optimizer_fns]
        scale = loss_scale()
        gradients = self.gradients_of_towers(towers, optimizers, scale, [1.0] * len(towers), spread=self.towers > 1)
        groups = averaged(gradients, [tower.weight for tower in towers])
        # With several losses no update may run before the last gradient was computed from the old values.
        computed = flat(groups) if len(optimizers) > 1 else []
        self.optimizers, self.applied = optimizers, groups
        with self.counted(self.samples(towers, optimizers)):
            return clipped_and_applied(optimizers, groups, scale, [*before, *computed], global_step)
