"""Settings of gradient compression for one optimizer."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.compression import Settings, settings
from moxing.tensorflow.optimizer.wrapper import GradientPairs, OptimizerWrapper


class DgcOptimizer(OptimizerWrapper):
    """Deep gradient compression with settings of its own, in a job with `--variable_update=distributed_replicated_dgc`.

    Compression is between the gradients of a worker and those of all, where no optimizer is. So the workers do it; the
    wrapper, which is the outermost one, tells them how, in place of the flags. The mathematics are in
    `moxing.tensorflow.optimizer.compression`. Without such a job it is an error.

    Args:
      optimizer: what is wrapped.
      sparsity_strategy: what part of the gradients is left out, such as `0.75,0.9375,0.999`: one for every epoch.
      momentum_type: vanilla or nesterov.
      momentum: its factor. If it is not given, that of the optimizer.
      momentum_factor_masking: what was sent has no momentum any more.
      total_samples: samples in an epoch.
      min_size_in_kb: variables smaller than that are sent whole.
      name: of the operations.

    Example:
      >>> with tf.Graph().as_default():
      ...     optimizer = DgcOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), sparsity_strategy='0.99')
      ...     optimizer.settings.sparsities
      (0.99,)
    """

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

    def _apply(self, pairs: GradientPairs) -> tf.Operation:
        raise ValueError(
            "get_optimizer_wrapper_fn('dgc', ...): gradients are compressed between workers; start the job with "
            "--variable_update=distributed_replicated_dgc, and let no other wrapper be around this one."
        )


def without_momentum(optimizer: tf.train.Optimizer) -> tuple[tf.train.Optimizer, float, bool]:
    """An optimizer whose momentum somebody else takes care of, the factor, and whether it is Nesterov's.

    `tf.train.MomentumOptimizer` becomes gradient descent, also inside wrappers. Others stay as they are.

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
            raise ValueError(f"MomentumOptimizer(momentum={factor!r}): gradient compression needs a number that stays.")
        return tf.train.GradientDescentOptimizer(optimizer._learning_rate), float(factor), nesterov
    if isinstance(optimizer, OptimizerWrapper):
        optimizer._optimizer, factor, nesterov = without_momentum(optimizer.wrapped)
        return optimizer, factor, nesterov
    return optimizer, 0.0, False
