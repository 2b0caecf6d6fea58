"""The model zoo: one family of networks per file, built from `Layers` (`parts/layers.py`).

`get_model_fn` builds a network by its name. A new family is one file with a table `NETWORKS` and one line for each
network in `moxing.tensorflow.network_registry.NetworkKeys`. Scripts add networks of their own with `register_network`.
Import from here only what `__all__` lists.
"""

from moxing.tensorflow.nets.nets_factory import ModelMeta, NetworkKeys, get_model_fn, get_model_meta
from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers, Style
from moxing.tensorflow.network_registry import Network, register_network

__all__ = [
    "BatchNorm",
    "Layers",
    "ModelMeta",
    "Network",
    "NetworkKeys",
    "Style",
    "get_model_fn",
    "get_model_meta",
    "register_network",
]
