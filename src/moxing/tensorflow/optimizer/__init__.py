"""Optimizers and optimizer wrappers by name."""

from moxing.tensorflow.optimizer.factory import OptimizerKeys, get_optimizer_fn
from moxing.tensorflow.optimizer.wrappers import get_optimizer_wrapper_fn

__all__ = ["OptimizerKeys", "get_optimizer_fn", "get_optimizer_wrapper_fn"]
