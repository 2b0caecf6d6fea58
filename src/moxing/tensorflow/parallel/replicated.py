"""`replicated` and `replicated_host`: every tower has a copy of the variables, and all apply the same mean gradient.

Only gradients are sent between the devices. The copies start equal and stay equal, so a checkpoint holds those of the
first tower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.wrappers.wrapper import flush_op
from moxing.tensorflow.parallel.devices import device_function, parameter_device
from moxing.tensorflow.parallel.gradients import (
    GradientPairs,
    check_same_variables,
    flatten,
    loss_gradients,
    normalize_weights,
    trainable_variables,
    variables_in_scopes,
    weighted_sum,
)
from moxing.tensorflow.parallel.local import Local
from moxing.tensorflow.parallel.loss_scale import make_loss_scale
from moxing.tensorflow.parallel.optimizers import apply_all, clip_gradients, make_optimizer
from moxing.tensorflow.parallel.strategy import Strategy, StrategyContext, register_strategy
from moxing.tensorflow.parallel.train_step import TrainSetup, TrainStep
from moxing.tf1.graph.towers import Towers


@register_strategy("replicated", "replicated_host", cluster=False)
class Replicated(Strategy):
    """A copy of the variables for every tower.

    Args:
      devices: the devices of this process, one for every tower.
      on_host: keep the copies in the memory of the host instead of on the towers' devices.
    """

    def __init__(self, devices: Sequence[str], on_host: bool = False) -> None:
        parameters = parameter_device()
        if on_host and parameters == "gpu":
            raise ValueError(
                "--variable_update=replicated_host keeps the copies of the variables in the memory of the host, and "
                "--local_parameter_device=gpu keeps them on the GPUs: leave one of them out."
            )
        super().__init__(devices, self._copy_of_trained)
        self._on_host = on_host or parameters == "cpu"
        #: For every tower, by `id` of the first tower's variable: the copy, and the first tower's variable.
        self._copies: list[dict[int, tuple[tf.Variable, tf.Variable]]] = [{} for _ in devices]
        #: All towers share what optimizer_fn creates, for instance a learning rate that is assigned.
        self._optimizer_fn_towers = Towers()
        self._slots = Towers(self._copy)

    @classmethod
    def create(cls, context: StrategyContext) -> Strategy:
        if len(context.devices) == 1:
            return Local(context.devices)
        return cls(context.devices, on_host=context.name == "replicated_host")

    def tower_device(self, index: int) -> Callable[[tf.Operation], str]:
        device = self.devices[index]
        return device_function(device, "/cpu:0" if self._on_host else device)

    def train_op(self, setup: TrainSetup) -> TrainStep:
        towers, global_step = setup.towers, setup.global_step
        variables = trainable_variables()
        scale = make_loss_scale()
        optimizers: list[list[Any]] = []
        gradients: list[list[GradientPairs]] = []
        for index, tower in enumerate(towers):
            with tf.device(self.tower_device(index)), self._optimizer_fn_towers.build(index):
                own = [make_optimizer(function) for function in setup.optimizer_fns]
            optimizers.append(own)
            with tf.device(self.tower_device(index)), self._slots.build(index):
                gradients.append(
                    [
                        loss_gradients(optimizer, loss, copies, scale, spread=True)
                        for optimizer, loss, scopes in zip(own, tower.losses, tower.var_scopes, strict=True)
                        for copies in [self._copies_of(index, variables_in_scopes(variables, scopes))]
                    ]
                )
                for optimizer, group in zip(own, gradients[-1], strict=True):
                    _create_slots(optimizer, group)
        means = self._mean_gradients(gradients, [tower.weight for tower in towers])
        pairs = [[clip_gradients(group) for group in groups] for groups in means]

        def apply() -> tf.Operation:
            applied: list[tf.Operation] = []
            for index in reversed(range(self.num_towers)):
                # The first tower advances global_step, after the others: their learning rate may depend on it.
                with tf.device(self.tower_device(index)), tf.control_dependencies(applied if index == 0 else []):
                    applied.append(apply_all(optimizers[index], pairs[index], global_step if index == 0 else None))
            return tf.group(*applied, name="train_op")

        # No tower may update a variable before all gradients are computed; and all see the same learning rate.
        computed = [gradient for groups in means for gradient in flatten(groups)]
        weight = self.step_weight(self.step_samples(towers, optimizers[0]), setup.batch_size)
        with tf.control_dependencies([*setup.before, *computed]), weight:
            op = apply() if scale is None else scale.applied(flatten(means[0]), apply, global_step)
        all_optimizers = [optimizer for own in optimizers for optimizer in own]
        return TrainStep(op, all_optimizers, means[0], flush_op(all_optimizers))

    def _mean_gradients(
        self, gradients: Sequence[Sequence[GradientPairs]], weights: Sequence[tf.Tensor | None]
    ) -> list[list[GradientPairs]]:
        """The mean gradients, for every tower and loss, paired with the tower's own variables."""
        firsts = {id(copied): first for copies in self._copies for copied, first in copies.values()}
        check_same_variables(
            [
                [[firsts.get(id(variable), variable) for _, variable in pairs] for pairs in losses]
                for losses in gradients
            ]
        )
        shares = normalize_weights(weights)
        on_gpus = self.devices[0].startswith("/gpu")
        result: list[list[GradientPairs]] = [[] for _ in self.devices]
        for loss, of_towers in enumerate(zip(*gradients, strict=True)):
            groups: list[GradientPairs] = [[] for _ in self.devices]
            for number, pairs in enumerate(zip(*of_towers, strict=True)):
                values = [gradient for gradient, _ in pairs]
                if on_gpus and not any(isinstance(value, tf.IndexedSlices) for value in values):
                    reduced = self._nccl_all_reduce(values, shares, f"moxing/{loss}/{number}")
                else:
                    reduced = [weighted_sum(values, shares)] * len(values)
                for group, value, (_, variable) in zip(groups, reduced, pairs, strict=True):
                    group.append((value, variable))
            for tower, group in zip(result, groups, strict=True):
                tower.append(group)
        return result

    def _nccl_all_reduce(self, values: Sequence[tf.Tensor], shares: Sequence[Any], name: str) -> list[tf.Tensor]:
        reduced = []
        for device, value, share in zip(self.devices, values, shares, strict=True):
            with tf.device(device):
                part = value * tf.cast(share, value.dtype)
                reduced.append(
                    tf.raw_ops.NcclAllReduce(
                        input=part, reduction="sum", num_devices=len(self.devices), shared_name=name
                    )
                )
        return reduced

    def sync_ops(self) -> list[tf.Operation]:
        """Copies the values of the first tower's variables to the other towers."""
        pairs = [pair for copies in self._copies for pair in copies.values()]
        return [tf.assign(copied, first.read_value()).op for copied, first in pairs]

    def _copy_of_trained(
        self, index: int, first: tf.Variable, create: Callable[..., tf.Variable], arguments: dict[str, Any]
    ) -> tf.Variable:
        """Copies trainable variables only; all towers share the rest, for instance moving averages."""
        return self._copy(index, first, create, arguments) if first.trainable else first

    def _copy(
        self, index: int, first: tf.Variable, create: Callable[..., tf.Variable], arguments: dict[str, Any]
    ) -> tf.Variable:
        # In no collection: checkpoints and initialization see the variables of the first tower only.
        others = {"collections": [], "trainable": False}
        if first.shape.is_fully_defined():
            # Never run: sync_ops sets the value. Zeros keep the graph small.
            others["initial_value"] = lambda: tf.zeros(first.shape, first.dtype.base_dtype)
        copied = create(**{**arguments, **others})
        self._copies[index][id(first)] = copied, first
        return copied

    def _copies_of(self, index: int, variables: Sequence[tf.Variable]) -> list[tf.Variable]:
        copies = self._copies[index]
        return [copies[id(variable)][0] if id(variable) in copies else variable for variable in variables]


def _create_slots(optimizer: Any, pairs: GradientPairs) -> None:
    """Creates the slots of the optimizer now, while the tower that they belong to is known."""
    if not isinstance(optimizer, tf.train.Optimizer):
        raise NotImplementedError(
            f"optimizer_fn returned {optimizer!r}: with --variable_update=replicated it must be a tf.train.Optimizer, "
            "which creates its slots on request. Use --variable_update=parameter_server."
        )
    optimizer._create_slots([variable for _, variable in pairs])
