"""`parameter_server` in one process: the towers share their variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.parallel.devices import logical_cpus, parameter_device, placed
from moxing.tensorflow.parallel.gradients import averaged, clipped, gradients_of, in_scopes, trainable_variables
from moxing.tensorflow.parallel.loss_scale import loss_scale
from moxing.tensorflow.parallel.optimizers import applied_together, made
from moxing.tensorflow.parallel.strategy import Strategy, Tower
from moxing.tf1.towers import Towers


class Local(Strategy):
    """Variables in one place; the mean of the towers' gradients is applied to them once.

    Args:
      devices: where the towers stand.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self.devices, self._parameters = list(devices), parameter_device()
        self._towers = Towers()

    @contextmanager
    def tower(self, index: int) -> Iterator[None]:
        """Inside, `model_fn` builds tower `index`."""
        with tf.device(self._device(index)), self._towers.build(index):
            yield

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        """One step: all gradients, then all updates, then `global_step` once."""
        optimizers = [made(function) for function in optimizer_fns]
        variables = trainable_variables()
        scale = loss_scale()
        gradients = []
        for index, tower in enumerate(towers):
            with tf.device(self._device(index)):
                gradients.append(
                    [
                        gradients_of(optimizer, loss, in_scopes(variables, scopes), scale, spread=self.towers > 1)
                        for optimizer, loss, scopes in zip(optimizers, tower.losses, tower.var_scopes, strict=True)
                    ]
                )
        groups = averaged(gradients, [tower.weight for tower in towers])
        everything = [gradient for group in groups for gradient, _ in group]
        # With several losses no update may run before the last gradient was computed from the old values.
        computed = everything if len(optimizers) > 1 else []
        pairs = [clipped(group) for group in groups]
        with tf.control_dependencies([*before, *computed]):
            # Unclipped: clipping by value makes an ordinary number of an infinite one.
            return scale.applied(everything, lambda: applied_together(optimizers, pairs, global_step), global_step)

    def configure(self, config: tf.ConfigProto) -> None:
        """As many logical CPU devices as there are towers on the CPU."""
        logical_cpus(config, self.devices)

    def _device(self, index: int) -> Callable[[tf.Operation], str]:
        if self.towers == 1:
            # One device, and TensorFlow knows best which operations it has.
            device = "/cpu:0" if FLAGS.get("clone_on_cpu") else ""
            return placed(device, f"/{self._parameters}:0" if self._parameters else device)
        return placed(self.devices[index], f"/{self._parameters or 'cpu'}:0")
