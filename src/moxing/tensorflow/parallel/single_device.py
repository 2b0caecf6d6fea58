"""The strategy for one device: gradients are applied where they were computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.parallel.gradients import clipped, gradients_of, in_scopes, trainable_variables
from moxing.tensorflow.parallel.loss_scale import loss_scale

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


class SingleDevice:
    """Builds the training operation of a model on one device."""

    def device(self, operation: tf.Operation) -> str:
        """Where an operation of the model goes; a device function for `tf.device`. Empty: TensorFlow decides."""
        parameters = FLAGS.get("local_parameter_device")
        if parameters is not None and operation.type in _VARIABLES:
            return f"/{parameters}:0"
        return "/cpu:0" if FLAGS.get("clone_on_cpu") else ""

    def train_op(
        self,
        losses: Sequence[tf.Tensor],
        var_scopes: Sequence[Sequence[str] | None],
        optimizer_fns: Sequence[Callable[..., Any]],
        before: Sequence[tf.Operation],
        global_step: tf.Variable,
    ) -> tf.Operation:
        """One step: all gradients, then all updates, then `global_step` once.

        Args:
          losses: the losses.
          var_scopes: for every loss the scopes that it trains, or None for all variables.
          optimizer_fns: for every loss a function that returns its optimizer.
          before: operations that come before the updates: the arrival of the batch, batch-norm moving averages.
          global_step: the step counter.
        """
        optimizers = [_optimizer(function) for function in optimizer_fns]
        variables = trainable_variables()
        scale = loss_scale()
        groups = [
            gradients_of(optimizer, loss, in_scopes(variables, scopes), scale)
            for optimizer, loss, scopes in zip(optimizers, losses, var_scopes, strict=True)
        ]
        gradients = [gradient for group in groups for gradient, _ in group]
        # With several losses no update may run before the last gradient was computed from the old values.
        computed = gradients if len(losses) > 1 else []
        pairs = [clipped(group) for group in groups]

        def apply() -> tf.Operation:
            *first, last = list(zip(optimizers, pairs, strict=True))
            applied = [optimizer.apply_gradients(group) for optimizer, group in first]
            with tf.control_dependencies(applied):
                applied.append(last[0].apply_gradients(last[1], global_step=global_step))
            return tf.group(*applied, name="train_op")

        with tf.control_dependencies([*before, *computed]):
            # Unclipped: clipping by value makes an ordinary number of an infinite one.
            return scale.applied(gradients, apply, global_step)


def _optimizer(function: Callable[..., Any]) -> Any:
    optimizer = function()
    if callable(getattr(optimizer, "compute_gradients", None)) and callable(
        getattr(optimizer, "apply_gradients", None)
    ):
        return optimizer
    raise TypeError(
        f"optimizer_fn returned {optimizer!r}: expected a tf.train.Optimizer (compute_gradients and apply_gradients)."
    )
