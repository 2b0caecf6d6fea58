"""`parameter_server` in one process: all towers share their variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.optimizer.wrappers.wrapper import OptimizerWrapper, flush_op
from moxing.tensorflow.parallel.devices import device_function, parameter_device
from moxing.tensorflow.parallel.gradients import average_gradients, flatten
from moxing.tensorflow.parallel.loss_scale import make_loss_scale
from moxing.tensorflow.parallel.optimizers import clip_and_apply, make_optimizer
from moxing.tensorflow.parallel.strategy import Strategy, register_strategy
from moxing.tensorflow.parallel.train_step import TrainSetup, TrainStep


@register_strategy("parameter_server", cluster=False)
class Local(Strategy):
    """One copy of the variables; the mean of the towers' gradients is applied to it once.

    Args:
      devices: the devices of this process, one for every tower.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        parameters = parameter_device()
        if len(devices) == 1:
            # With one device, leave the placement of operations to TensorFlow.
            device = "/cpu:0" if FLAGS.get("clone_on_cpu") else ""
            self._device_functions = [device_function(device, f"/{parameters}:0" if parameters else device)]
        else:
            self._device_functions = [device_function(device, f"/{parameters or 'cpu'}:0") for device in devices]
        super().__init__(devices)

    def tower_device(self, index: int) -> Callable[[tf.Operation], str]:
        return self._device_functions[index]

    def train_op(self, setup: TrainSetup) -> TrainStep:
        optimizers = [make_optimizer(function) for function in setup.optimizer_fns]
        towers, scale = setup.towers, make_loss_scale()
        wrappers = [optimizer for optimizer in optimizers if isinstance(optimizer, OptimizerWrapper)]
        # Only wrappers ask for the weight of a step.
        samples = self.step_samples(towers, wrappers) if wrappers else None
        step_weight = nullcontext() if samples is None else self.step_weight(samples, setup.batch_size)
        gradients = self.tower_gradients(towers, optimizers, scale, [1.0] * len(towers), spread=self.num_towers > 1)
        groups = average_gradients(gradients, [tower.weight for tower in towers])
        # With several losses, no update may run before the last gradient is computed from the old values.
        computed = flatten(groups) if len(optimizers) > 1 else []
        with step_weight:
            op = clip_and_apply(optimizers, groups, scale, [*setup.before, *computed], setup.global_step)
        return TrainStep(op, optimizers, groups, flush_op(wrappers) if wrappers else None)
