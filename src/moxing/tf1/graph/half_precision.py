"""Half precision for a model that is written in float32: only its convolutions and matrix products.

An operation for which devices have fast hardware gets its inputs cast to half precision and its output cast back. The
script sees float32 everywhere, variables and statistics stay float32, and the gradient of a cast is a cast.
TensorFlow's own graph rewrite to mixed precision is not used: on 2.21 it aborts the process inside a `tf.while_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.eager import record
from tensorflow.python.framework import ops

#: The operations, with the positions of the inputs to cast; the other inputs are shapes. `Einsum` casts all.
_INPUTS_TO_CAST = {
    "BatchMatMul": (0, 1),
    "BatchMatMulV2": (0, 1),
    "Conv2D": (0, 1),
    "Conv2DBackpropInput": (1, 2),
    "Conv3D": (0, 1),
    "Conv3DBackpropInputV2": (1, 2),
    "DepthwiseConv2dNative": (0, 1),
    "MatMul": (0, 1),
}


@contextmanager
def half_precision(dtype: tf.DType | None) -> Iterator[None]:
    """Computes float32 convolutions and matrix products in `dtype` inside the block.

    Operations that a `tf.GradientTape` watches stay float32: the tape records the operation that was requested.

    Args:
      dtype: `tf.float16` or `tf.bfloat16`; None changes nothing.

    Example:
      >>> with tf.Graph().as_default() as graph, half_precision(tf.float16):
      ...     product = tf.matmul(tf.ones([2, 3]), tf.ones([3, 2]))
      >>> product.dtype, [op.get_attr('T') for op in graph.get_operations() if op.type == 'MatMul']
      (tf.float32, [tf.float16])
    """
    if dtype is None:
        yield
        return
    create = ops.Graph._create_op_internal

    def create_cast(
        graph: tf.Graph, op_type: str, inputs: Sequence[tf.Tensor], dtypes: Sequence[Any] | None = None, *args: Any,
        **kwargs: Any,
    ) -> tf.Operation:  # fmt: skip
        positions = _inputs_to_cast(op_type, inputs)
        is_float32 = all(inputs[position].dtype == tf.float32 for position in positions)
        if not positions or not is_float32 or record.could_possibly_record():
            return create(graph, op_type, inputs, dtypes, *args, **kwargs)
        return _Operation(op_type, inputs, args, kwargs).create_cast(create, graph, dtype)

    ops.Graph._create_op_internal = create_cast
    try:
        yield
    finally:
        ops.Graph._create_op_internal = create


def _inputs_to_cast(op_type: str, inputs: Sequence[tf.Tensor]) -> Sequence[int]:
    if op_type == "Einsum":
        return range(len(inputs)) if len(inputs) > 1 else ()  # with one input it is a sum or a transposition
    return _INPUTS_TO_CAST.get(op_type, ())


@dataclass(frozen=True)
class _Operation:
    """An operation that is about to be created; `args` and `kwargs` are the rest of TensorFlow's arguments."""

    op_type: str
    inputs: Sequence[tf.Tensor]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def create_cast(self, create: Callable[..., tf.Operation], graph: tf.Graph, dtype: tf.DType) -> tf.Operation:
        positions = _inputs_to_cast(self.op_type, self.inputs)
        inputs = [tf.cast(value, dtype) if i in positions else value for i, value in enumerate(self.inputs)]
        arguments = dict(zip(("input_types", "name", "attrs", "op_def"), self.args, strict=False)) | self.kwargs
        arguments["input_types"] = [value.dtype.base_dtype for value in inputs]
        attributes = dict(arguments["attrs"])
        attributes["T"] = type(attributes["T"])(type=dtype.as_datatype_enum)
        arguments["attrs"] = attributes
        operation = create(graph, self.op_type, inputs, [dtype], **arguments)
        # The caller reads the outputs of the operation that it gets: return the cast back to float32.
        return tf.cast(operation.outputs[0], tf.float32).op
