"""`tf.contrib.framework.nest`: the whole private module of TensorFlow 1, with the names of that time."""

from __future__ import annotations

from tensorflow.python.util import nest as _nest

from moxing.tf1.module_proxy import ModuleProxy

nest = ModuleProxy(_nest, {"is_sequence": _nest.is_nested, "is_sequence_or_composite": _nest.is_nested_or_composite})
