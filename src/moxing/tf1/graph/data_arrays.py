"""Keeps the arrays of datasets out of the graph.

`Dataset.from_tensor_slices(array)` makes a constant of the array. The graph is then as large as the data, and with it
every file that holds the graph, and every copy of it that a session makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.data.ops import from_tensor_slices_op, from_tensors_op
from tensorflow.python.data.util import nest, structure
from tensorflow.python.framework import func_graph, function

from moxing.tf1.module_proxy import ModuleProxy

#: Arrays of at least this many bytes stay out of the graph.
LARGE_BYTES = 64 * 1024
#: TensorFlow takes arrays at such addresses without a copy.
_ALIGNMENT = 64
#: Booleans, integers and numbers. Texts are converted when they become constants.
_KINDS = "biufc"
_MODULES: tuple[Any, ...] = (from_tensor_slices_op, from_tensors_op)


@contextmanager
def arrays_outside_graph() -> Iterator[None]:
    """Inside, large arrays that datasets are made of are read from memory when the iterator is initialised.

    The graph has an operation that returns the array in place of a constant. The array is copied, so that the script
    may change its own.

    Example:
      >>> array = np.zeros([1000, 100])
      >>> with tf.Graph().as_default() as graph, arrays_outside_graph():
      ...     data = tf.data.Dataset.from_tensor_slices(array)
      >>> graph.as_graph_def().ByteSize() < 2000, data.element_spec.shape.as_list()
      (True, [100])
    """

    def normalize_element(element: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tf.get_default_graph(), func_graph.FuncGraph | function._FuncGraph):
            element = nest.map_structure(_outside_graph, element)
        return structure.normalize_element(element, *args, **kwargs)

    before = [module.structure for module in _MODULES]
    for module in _MODULES:
        module.structure = ModuleProxy(structure, {"normalize_element": normalize_element})
    try:
        yield
    finally:
        for module, original in zip(_MODULES, before, strict=True):
            module.structure = original


def _outside_graph(component: Any) -> Any:
    """The tensor that takes the place of a large array; anything else as it is."""
    # Columns of pandas are arrays too.
    is_column = hasattr(component, "__array__") and type(component).__module__.partition(".")[0] == "pandas"
    if not isinstance(component, np.ndarray) and not is_column:
        return component
    array = np.asarray(component)
    if array.dtype.kind not in _KINDS or array.nbytes < LARGE_BYTES:
        return component
    kept = _aligned_copy(array)
    # Not stateful, so that a one-shot iterator can hold it.
    tensor = tf.numpy_function(lambda: kept, [], tf.as_dtype(array.dtype), stateful=False, name="array")
    tensor.set_shape(array.shape)
    return tensor


def _aligned_copy(array: np.ndarray) -> np.ndarray:
    memory: np.ndarray = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
