"""The affine map of cells: variables `kernel` and `bias` in the current variable scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Any:
    """Returns `concat(args) @ kernel + bias`, [batch, output_size]; `_linear` of TensorFlow 1.

    Args:
      args: [batch, n], or a list of such tensors.
      output_size: number of columns of `kernel`.
      bias: whether to add `bias`.
      bias_initializer: default: zeros.
      kernel_initializer: default: that of the variable scope.

    Example:
      >>> with tf.Graph().as_default():
      ...     print(linear([tf.ones([2, 3]), tf.ones([2, 1])], 5, True).shape)
      (2, 5)
    """
    return Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


class Linear:
    """The map as an object that creates its variables at once; `_Linear` of TensorFlow 1."""

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        inputs = _as_list(args)
        sizes = [_columns(one) for one in inputs]
        dtype = inputs[0].dtype
        self._kernel = v1.get_variable(
            "kernel", [sum(sizes), int(output_size)], dtype=dtype, initializer=kernel_initializer
        )
        self._bias = None
        if build_bias:
            start = v1.zeros_initializer(dtype=dtype) if bias_initializer is None else bias_initializer
            self._bias = v1.get_variable("bias", [int(output_size)], dtype=dtype, initializer=start)

    def __call__(self, args: Any) -> Any:
        inputs = _as_list(args)
        product = tf.matmul(inputs[0] if len(inputs) == 1 else tf.concat(inputs, axis=1), self._kernel)
        return product if self._bias is None else tf.nn.bias_add(product, self._bias)


def _as_list(args: Any) -> list[Any]:
    if isinstance(args, Sequence):
        if not args:
            raise ValueError(f"args must be a tensor or a list of at least one tensor, got {args!r}")
        return [tf.convert_to_tensor(one) for one in args]
    return [tf.convert_to_tensor(args)]


def _columns(tensor: Any) -> int:
    if tensor.shape.rank != 2 or tensor.shape.as_list()[1] is None:
        raise ValueError(f"args must be tensors [batch, n] with a static n, got {tensor.name} of shape {tensor.shape}")
    return int(tensor.shape.as_list()[1])
