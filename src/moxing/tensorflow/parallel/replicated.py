"""`replicated` and `replicated_host`: every tower has variables of its own, and all apply the same mean gradient.

Nothing waits for one place that holds the variables: what crosses between the devices is the gradients alone. The
copies are equal after every step, as long as they begin equal; so a checkpoint holds those of the first tower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.parallel.devices import parameter_device, placed
from moxing.tensorflow.parallel.gradients import (
    GradientPairs,
    check_same_variables,
    clipped,
    flat,
    mean,
    shares_of,
    trainable_variables,
)
from moxing.tensorflow.parallel.loss_scale import loss_scale
from moxing.tensorflow.parallel.optimizers import applied_together, made
from moxing.tensorflow.parallel.strategy import Strategy, Tower
from moxing.tf1.towers import Towers


class Replicated(Strategy):
    """Variables on every tower.

    Args:
      devices: where the towers stand.
      on_host: the copies are in the memory of the host, one for every tower, instead of on the towers' devices.
    """

    def __init__(self, devices: Sequence[str], on_host: bool = False) -> None:
        parameters = parameter_device()
        if on_host and parameters == "gpu":
            raise ValueError(
                "--variable_update=replicated_host keeps the copies of the variables in the memory of the host, and "
                "--local_parameter_device=gpu on the GPUs: leave one of them out."
            )
        super().__init__(devices, self._copy_of_trained)
        self._on_host = on_host or parameters == "cpu"
        #: For every tower its copies, by `id` of the first tower's variable, and that variable.
        self._copies: list[dict[int, tuple[tf.Variable, tf.Variable]]] = [{} for _ in devices]
        #: What optimizer_fn creates, a learning rate that is assigned for instance, is one for all.
        self._of_optimizer_fns = Towers()
        self._slots = Towers(self._copy)

    def place(self, index: int) -> Callable[[tf.Operation], str]:
        device = self.devices[index]
        return placed(device, "/cpu:0" if self._on_host else device)

    def train_op(
        self,
        towers: Sequence[Tower],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        """One step: all gradients, then the same updates on every tower, then `global_step` once."""
        variables = trainable_variables()
        scale = loss_scale()
        optimizers: list[list[Any]] = []
        gradients: list[list[GradientPairs]] = []
        for index, tower in enumerate(towers):
            with tf.device(self.place(index)), self._of_optimizer_fns.build(index):
                own = [made(function) for function in optimizer_fns]
            optimizers.append(own)
            self.optimizers = [*self.optimizers, *own]
            with tf.device(self.place(index)), self._slots.build(index):
                gradients.append(tower.gradients(own, variables, scale, copies_of=partial(self._own, index)))
                for optimizer, group in zip(own, gradients[-1], strict=True):
                    _create_slots(optimizer, group)
        combined = self._combined(gradients, [tower.weight for tower in towers])
        self.applied = combined[0]
        pairs = [[clipped(group) for group in groups] for groups in combined]

        def apply() -> tf.Operation:
            applied: list[tf.Operation] = []
            for index in reversed(range(self.towers)):
                # The first tower counts the step, which a learning rate may depend on: when the others are done.
                with tf.device(self.place(index)), tf.control_dependencies(applied if index == 0 else []):
                    applied.append(
                        applied_together(optimizers[index], pairs[index], global_step if index == 0 else None)
                    )
            return tf.group(*applied, name="train_op")

        # No tower may update what another one still computes with, and all see the same rate.
        computed = [gradient for groups in combined for gradient in flat(groups)]
        counted = self.counted(self.samples(towers, optimizers[0]))
        with tf.control_dependencies([*before, *computed]), counted:
            return scale.applied(flat(combined[0]), apply, global_step)

    def _combined(
        self, gradients: Sequence[Sequence[GradientPairs]], weights: Sequence[tf.Tensor | None]
    ) -> list[list[GradientPairs]]:
        """For every tower and loss the mean gradients, with the tower's own variables."""
        firsts = {id(copied): first for copies in self._copies for copied, first in copies.values()}
        check_same_variables(
            [
                [[firsts.get(id(variable), variable) for _, variable in pairs] for pairs in losses]
                for losses in gradients
            ]
        )
        shares = shares_of(weights)
        on_gpus = self.devices[0].startswith("/gpu")
        result: list[list[GradientPairs]] = [[] for _ in self.devices]
        for loss, of_towers in enumerate(zip(*gradients, strict=True)):
            groups: list[GradientPairs] = [[] for _ in self.devices]
            for number, pairs in enumerate(zip(*of_towers, strict=True)):
                values = [gradient for gradient, _ in pairs]
                if on_gpus and not any(isinstance(value, tf.IndexedSlices) for value in values):
                    means = self._reduced_by_nccl(values, shares, f"moxing/{loss}/{number}")
                else:
                    means = [mean(values, shares)] * len(values)
                for group, value, (_, variable) in zip(groups, means, pairs, strict=True):
                    group.append((value, variable))
            for tower, group in zip(result, groups, strict=True):
                tower.append(group)
        return result

    def _reduced_by_nccl(self, values: Sequence[tf.Tensor], shares: Sequence[Any], name: str) -> list[tf.Tensor]:
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

    def ready(self) -> list[tf.Operation]:
        """The copies take the values of the first tower's variables."""
        pairs = [pair for copies in self._copies for pair in copies.values()]
        return [tf.assign(copied, first.read_value()).op for copied, first in pairs]

    def _copy_of_trained(
        self, index: int, first: tf.Variable, create: Callable[..., tf.Variable], arguments: dict[str, Any]
    ) -> tf.Variable:
        """A copy of what the optimizer changes; the rest, moving averages for instance, is the first tower's."""
        return self._copy(index, first, create, arguments) if first.trainable else first

    def _copy(
        self, index: int, first: tf.Variable, create: Callable[..., tf.Variable], arguments: dict[str, Any]
    ) -> tf.Variable:
        # In no collection of the graph: checkpoints and initialisation know the first tower's alone.
        others = {"collections": [], "trainable": False}
        if first.shape.is_fully_defined():
            # It is never run, and random numbers would only make the graph larger.
            others["initial_value"] = lambda: tf.zeros(first.shape, first.dtype.base_dtype)
        copied = create(**{**arguments, **others})
        self._copies[index][id(first)] = copied, first
        return copied

    def _own(self, index: int, variables: Sequence[tf.Variable]) -> list[tf.Variable]:
        copies = self._copies[index]
        return [copies[id(variable)][0] if id(variable) in copies else variable for variable in variables]


def _create_slots(optimizer: Any, pairs: GradientPairs) -> None:
    """Makes the optimizer's own variables now, while it is known whose copies they are."""
    if not isinstance(optimizer, tf.train.Optimizer):
        raise NotImplementedError(
            f"optimizer_fn returned {optimizer!r}: with --variable_update=replicated it must be a tf.train.Optimizer, "
            "whose variables are known. Use --variable_update=parameter_server."
        )
    optimizer._create_slots([variable for _, variable in pairs])
