"""Half precision for a model that is written in float32: its convolutions and matrix products, and nothing else.

An operation that a device has fast hardware for is created with its inputs cast to half precision and its output cast
back. The script sees float32 everywhere, variables and statistics stay float32, and gradients follow by themselves:
that of a cast is a cast. TensorFlow's own rewriting of graphs to mixed precision is not used: on 2.21 it ends the
process inside a `tf.while_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.eager import record
from tensorflow.python.framework import ops

#: The operations, with the inputs that are numbers (the others are shapes). Of `Einsum` all are.
_NUMBERS = {
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
def in_half(dtype: tf.DType | None) -> Iterator[None]:
    """Inside, convolutions and matrix products of float32 are computed in `dtype`; None changes nothing.

    What a `tf.GradientTape` watches stays float32: the tape records the operation that was asked for.

    Example:
      >>> with tf.Graph().as_default() as graph, in_half(tf.float16):
      ...     product = tf.matmul(tf.ones([2, 3]), tf.ones([3, 2]))
      >>> product.dtype, [op.get_attr('T') for op in graph.get_operations() if op.type == 'MatMul']
      (tf.float32, [tf.float16])
    """
    if dtype is None:
        yield
        return
    create = ops.Graph._create_op_internal

    def create_in_half(
        graph: tf.Graph, op_type: str, inputs: Sequence[tf.Tensor], dtypes: Sequence[Any] | None = None, *args: Any,
        **kwargs: Any,
    ) -> tf.Operation:  # fmt: skip
        numbers = _numbers(op_type, inputs)
        if not numbers or record.could_possibly_record() or any(inputs[index].dtype != tf.float32 for index in numbers):
            return create(graph, op_type, inputs, dtypes, *args, **kwargs)
        return _created(create, graph, op_type, inputs, numbers, dtype, args, kwargs)

    ops.Graph._create_op_internal = create_in_half
    try:
        yield
    finally:
        ops.Graph._create_op_internal = create


def _numbers(op_type: str, inputs: Sequence[tf.Tensor]) -> Sequence[int]:
    if op_type == "Einsum":
        return range(len(inputs)) if len(inputs) > 1 else ()  # of one tensor it is a sum or a transposition
    return _NUMBERS.get(op_type, ())


def _created(
    create: Callable[..., tf.Operation],
    graph: tf.Graph,
    op_type: str,
    inputs: Sequence[tf.Tensor],
    numbers: Sequence[int],
    dtype: tf.DType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tf.Operation:
    cast = [tf.cast(value, dtype) if index in numbers else value for index, value in enumerate(inputs)]
    names = ("input_types", "name", "attrs", "op_def")
    given = dict(zip(names, args, strict=False)) | kwargs
    given["input_types"] = [value.dtype.base_dtype for value in cast]
    attributes = dict(given["attrs"])
    attributes["T"] = type(attributes["T"])(type=dtype.as_datatype_enum)
    given["attrs"] = attributes
    operation = create(graph, op_type, cast, [dtype], **given)
    # The caller takes the outputs of what it is given: those of the cast.
    return tf.cast(operation.outputs[0], tf.float32).op
