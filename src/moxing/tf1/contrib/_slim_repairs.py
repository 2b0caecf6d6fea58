"""Makes tf-slim 1.1.0 work on TensorFlow 2.21.

tf-slim uses private modules of TensorFlow, in which some names have moved since its last release. Each such module of
tf-slim gets a proxy of the private module that has the old names too. TensorFlow itself does not change.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from moxing.tf1.module_proxy import ModuleProxy

# (module of tf-slim, its name for the private module) -> old names and their public names below tf.compat.v1.
_MOVED: dict[tuple[str, str], dict[str, str]] = {
    ("tf_slim.data.tfexample_decoder", "array_ops"): {"stack": "stack"},
    ("tf_slim.data.tfexample_decoder", "control_flow_ops"): {"case": "case", "cond": "cond"},
    ("tf_slim.layers.layers", "array_ops"): {"stack": "stack", "unstack": "unstack"},
    ("tf_slim.layers.optimizers", "ops"): {"IndexedSlices": "IndexedSlices", "Tensor": "Tensor"},
    ("tf_slim.layers.rev_block_lib", "framework_ops"): {"Tensor": "Tensor"},
    ("tf_slim.layers.utils", "control_flow_ops"): {"cond": "cond"},
    ("tf_slim.layers.utils", "ops"): {"Tensor": "Tensor"},
    ("tf_slim.learning", "ops"): {"IndexedSlices": "IndexedSlices", "Tensor": "Tensor"},
    ("tf_slim.losses.metric_learning", "control_flow_ops"): {"while_loop": "while_loop"},
    ("tf_slim.metrics.histogram_ops", "control_flow_ops"): {"Assert": "Assert"},
    ("tf_slim.metrics.metric_ops", "array_ops"): {"stack": "stack"},
    ("tf_slim.metrics.metric_ops", "control_flow_ops"): {"cond": "cond"},
    ("tf_slim.ops.variables", "variable_scope"): {"variable": "Variable"},
    ("tf_slim.training.training", "ops"): {"IndexedSlices": "IndexedSlices"},
}


@functools.lru_cache(maxsize=1)
def load() -> ModuleType:
    """Imports tf-slim and adds the moved names. Every use of tf-slim goes through this function."""
    slim = importlib.import_module("tf_slim")
    for (module_name, private), moved in _MOVED.items():
        module = importlib.import_module(module_name)
        _replace(module, private, moved)
    return slim


def _replace(module: ModuleType, private: str, moved: dict[str, str]) -> None:
    import tensorflow as tf

    real = getattr(module, private)
    more = {name: getattr(tf.compat.v1, public) for name, public in moved.items() if not hasattr(real, name)}
    setattr(module, private, ModuleProxy(real, more))
