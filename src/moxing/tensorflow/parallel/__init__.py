"""How gradients become updates: one strategy a file."""

from moxing.tensorflow.parallel.choice import choose_strategy
from moxing.tensorflow.parallel.strategy import Strategy, Tower

__all__ = ["Strategy", "Tower", "choose_strategy"]
