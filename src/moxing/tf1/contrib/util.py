"""`tf.contrib.util`: tensors as protocol buffers."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(("tensorflow.compat.v1:", "make_ndarray make_tensor_proto constant_value=get_static_value"))

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
