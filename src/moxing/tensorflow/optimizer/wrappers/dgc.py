"""Settings of gradient compression for one optimizer."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.wrappers.compression import Settings, settings
from moxing.tensorflow.optimizer.wrappers.wrapper import GradientPairs, OptimizerWrapper


class DgcOptimizer(OptimizerWrapper):
    """Deep gradient compression with settings of its own, in a job with `--variable_update=distributed_replicated_dgc`.

    The strategy compresses the gradients of a worker before they are added up; this wrapper, which must be the
    outermost one, only holds the settings, which replace the flags. The arithmetic is in
    `moxing.tensorflow.optimizer.wrappers.compression`. In other jobs it is an error.

    Args:
      optimizer: the optimizer inside.
      sparsity_strategy: fraction of the gradients that is not sent, for every epoch, such as `0.75,0.9375,0.999`.
      momentum_type: vanilla or nesterov.
      momentum: momentum factor; None: that of the optimizer.
      momentum_factor_masking: true if the momentum of sent values is reset to 0.
      total_samples: samples in an epoch.
      min_size_in_kb: smaller variables are not compressed.
      name: name of the operations.

    Example:
      >>> with tf.Graph().as_default():
      ...     optimizer = DgcOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), sparsity_strategy='0.99')
      ...     optimizer.settings.sparsities
      (0.99,)
    """

    repeatable = False

    def __init__(
        self,
        optimizer: tf.train.Optimizer,
        sparsity_strategy: Any = None,
        momentum_type: str | None = None,
        momentum: float | None = None,
        momentum_factor_masking: bool | None = None,
        total_samples: int | None = None,
        min_size_in_kb: int | None = None,
        name: str = "Dgc",
    ) -> None:
        super().__init__(optimizer, name)
        self.settings: Settings = settings(
            sparsity_strategy, momentum_type, momentum, momentum_factor_masking, total_samples, min_size_in_kb
        )

    def easgd_conflict(self, side: str) -> str:
        return f"dgc {side} easgd: nothing is sent that could be compressed"

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        raise ValueError(
            "get_optimizer_wrapper_fn('dgc', ...): gradients are compressed between workers; start the job with "
            "--variable_update=distributed_replicated_dgc, and put no other wrapper around this one."
        )


def without_momentum(optimizer: tf.train.Optimizer) -> tuple[tf.train.Optimizer, float, bool]:
    """Returns an optimizer without momentum, the momentum factor, and whether it was Nesterov momentum.

    `tf.train.MomentumOptimizer` becomes gradient descent, also inside of wrappers. Others are returned unchanged.

    Example:
      >>> with tf.Graph().as_default():
      ...     plain, momentum, nesterov = without_momentum(tf.train.MomentumOptimizer(0.1, 0.9))
      >>> type(plain).__name__, momentum, nesterov
      ('GradientDescentOptimizer', 0.9, False)
    """
    if type(optimizer) is tf.train.MomentumOptimizer:
        factor, nesterov = optimizer._momentum, optimizer._use_nesterov
        factor = factor() if callable(factor) else factor
        if not isinstance(factor, (int, float)):
            raise ValueError(f"MomentumOptimizer(momentum={factor!r}): gradient compression needs a constant number.")
        return tf.train.GradientDescentOptimizer(optimizer._learning_rate), float(factor), nesterov
    if isinstance(optimizer, OptimizerWrapper):
        optimizer._optimizer, factor, nesterov = without_momentum(optimizer.wrapped)
        return optimizer, factor, nesterov
    return optimizer, 0.0, False
