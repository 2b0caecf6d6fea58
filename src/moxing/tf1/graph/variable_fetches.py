"""Fetches of a variable by name: as in TensorFlow 1, `session.run('w:0')` returns its value.

`w:0` of a resource variable is its handle, whose bytes mean nothing to a program.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow.compat.v1 as tf

_HANDLE = "VarHandleOp"
_READ = "ReadVariableOp"


def install() -> None:
    """Makes every session return the value of a variable where its handle is fetched. More calls do nothing."""
    from tensorflow.python.client import session

    mapper: Any = session._ElementFetchMapper
    if hasattr(mapper.__init__, "_moxing_original"):
        return
    create = mapper.__init__

    @functools.wraps(create)
    def create_reading(self: Any, fetches: Any, contraction_fn: Any) -> None:
        create(self, fetches, contraction_fn)
        self._unique_fetches = [fetched_value(element) for element in self._unique_fetches]

    create_reading._moxing_original = create  # type: ignore[attr-defined]
    mapper.__init__ = create_reading


def fetched_value(element: Any) -> Any:
    """Returns what is fetched for a graph element: the value of a variable for its handle, else the element itself.

    Example:
      >>> with tf.Graph().as_default() as graph:
      ...     variable = tf.get_variable('w', [2], use_resource=True)
      ...     fetched_value(graph.get_tensor_by_name('w:0')).dtype
      tf.float32
    """
    if not isinstance(element, tf.Tensor) or element.dtype != tf.resource or element.op.type != _HANDLE:
        return element
    graph = element.graph
    try:
        # Every variable of tf.get_variable and tf.Variable has this operation.
        return graph.get_tensor_by_name(f"{element.op.name}/Read/{_READ}:0")
    except KeyError:
        pass
    # A read without conditions: another may run after an update only.
    reads = [op for op in element.consumers() if op.type == _READ and not op.control_inputs]
    if reads:
        return reads[0].outputs[0]
    if graph.finalized:
        return element
    with graph.as_default(), tf.name_scope(None), tf.control_dependencies(None), tf.device(element.device):
        dtype = tf.as_dtype(element.op.get_attr("dtype"))
        return tf.raw_ops.ReadVariableOp(resource=element, dtype=dtype, name=f"{element.op.name}/Read/{_READ}")
