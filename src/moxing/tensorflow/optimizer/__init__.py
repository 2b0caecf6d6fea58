"""Optimizers by name."""

from moxing.tensorflow.optimizer.factory import OptimizerKeys, get_optimizer_fn

__all__ = ["OptimizerKeys", "get_optimizer_fn"]
