"""How gradients become updates: one strategy a file. This version has the one for a single device."""

from moxing.tensorflow.parallel.single_device import SingleDevice

__all__ = ["SingleDevice"]
