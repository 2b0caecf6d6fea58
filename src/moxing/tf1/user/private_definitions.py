"""Private functions of TensorFlow 1 that exist nowhere today, but that public programs import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

__all__ = [
    "RegisterShape",
    "call_cpp_shape_fn",
    "defun",
    "get_registered_ops",
    "in_graph_mode",
    "matrix",
    "scalar",
    "scalar_shape",
    "unchanged_shape",
    "unknown_shape",
    "vector",
]


class _Linear:
    """A linear map of one or several tensors, concatenated, as RNN cells used it up to 1.5.

    Args:
      args: a tensor [batch, depth], or a list of them.
      output_size: the depth of the result.
      build_bias: whether to add the variable `bias`.
      bias_initializer: zeros by default.
      kernel_initializer: of the variable `kernel`; that of the variable scope by default.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        import tensorflow.compat.v1 as tf

        self._several = isinstance(args, list | tuple)
        tensors = self._tensors(args)
        depth = sum(_depth(tensor) for tensor in tensors)
        dtype = tensors[0].dtype
        with tf.variable_scope(tf.get_variable_scope()) as scope:
            self._kernel = tf.get_variable("kernel", [depth, output_size], dtype, kernel_initializer)
            self._bias = None
            if build_bias:
                scope.set_partitioner(None)
                start = tf.zeros_initializer() if bias_initializer is None else bias_initializer
                self._bias = tf.get_variable("bias", [output_size], dtype, start)

    def _tensors(self, args: Any) -> list[Any]:
        tensors = list(args) if isinstance(args, list | tuple) else [args]
        if not tensors or tensors[0] is None:
            raise ValueError(f"args must be a tensor or a list of tensors, got {args!r}")
        return tensors

    def __call__(self, args: Any) -> Any:
        import tensorflow.compat.v1 as tf

        tensors = self._tensors(args)
        product = tf.matmul(tensors[0] if len(tensors) == 1 else tf.concat(tensors, 1), self._kernel)
        return product if self._bias is None else tf.nn.bias_add(product, self._bias)


def _linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
    scope: Any = None,
    bias_start: float | None = None,
) -> Any:
    """Returns args x kernel + bias. A number in place of `bias_initializer` is the `bias_start` of 1.0."""
    import tensorflow.compat.v1 as tf

    start = bias_initializer if bias_start is None else bias_start
    if isinstance(start, int | float):
        start = tf.constant_initializer(start)
    if scope is None:
        return _Linear(args, output_size, bias, start, kernel_initializer)(args)
    with tf.variable_scope(scope):
        return _Linear(args, output_size, bias, start, kernel_initializer)(args)


def _depth(tensor: Any) -> int:
    shape = tensor.shape
    if shape.rank != 2 or shape.as_list()[1] is None:
        raise ValueError(f"expected a tensor [batch, depth] with a known depth, got the shape {shape}")
    return int(shape.as_list()[1])


class RegisterShape:
    """A decorator without effect, as in TensorFlow 1: shapes come from the operation itself.

    Example:
      >>> RegisterShape('MyOp')(len) is len
      True
    """

    def __init__(self, op_type: str) -> None:
        self.op_type = op_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


def scalar() -> Any:
    """Returns the shape of a scalar.

    Example:
      >>> scalar().as_list()
      []
    """
    import tensorflow as tf

    return tf.TensorShape([])


def vector(length: Any) -> Any:
    """Returns the shape of a vector.

    Example:
      >>> vector(3).as_list()
      [3]
    """
    import tensorflow as tf

    return tf.TensorShape([length])


def matrix(rows: Any, cols: Any) -> Any:
    """Returns the shape of a matrix.

    Example:
      >>> matrix(2, None).as_list()
      [2, None]
    """
    import tensorflow as tf

    return tf.TensorShape([rows, cols])


def unknown_shape(op: Any) -> list[Any]:
    """Returns an unknown shape for every output of an operation."""
    import tensorflow as tf

    return [tf.TensorShape(None) for _ in op.outputs]


def unchanged_shape(op: Any) -> list[Any]:
    """Returns the shape of the first input of an operation."""
    return [op.inputs[0].get_shape()]


def scalar_shape(op: Any) -> list[Any]:
    """Returns the shape of a scalar."""
    del op
    return [scalar()]


def call_cpp_shape_fn(op: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error. Programs only passed it to `RegisterShape`, which has no effect."""
    raise NotImplementedError(
        f"common_shapes.call_cpp_shape_fn({op!r}): TensorFlow sets the shapes of an operation itself; remove the call."
    )


def get_registered_ops() -> dict[str, Any]:
    """Returns the definitions of all operations by their names.

    Example:
      >>> get_registered_ops()['MatMul'].name
      'MatMul'
    """
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    with_buffer = pywrap_tf_session.TF_GetAllOpList()
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(with_buffer))
    return {op.name: op for op in ops.op}


def _safe_div(numerator: Any, denominator: Any, name: str = "value") -> Any:
    """Returns the quotient, and 0 where the denominator is not positive."""
    import tensorflow.compat.v1 as tf

    with tf.name_scope(name):
        positive = tf.greater(denominator, 0)
        safe = tf.where(positive, denominator, tf.ones_like(denominator))
        return tf.where(positive, tf.divide(numerator, safe), tf.zeros_like(tf.divide(numerator, safe)))


def _create_local(
    name: str, shape: Sequence[int], collections: Any = None, validate_shape: bool = True, dtype: Any = None
) -> Any:
    """Creates a local variable of zeros, as metrics of 1.0 to 1.3 did."""
    import tensorflow.compat.v1 as tf

    wanted = [*(collections or []), tf.GraphKeys.LOCAL_VARIABLES]
    return tf.Variable(
        lambda: tf.zeros(shape, dtype or tf.float32),
        name=name,
        trainable=False,
        collections=wanted,
        validate_shape=validate_shape,
    )


def in_graph_mode() -> bool:
    """Returns True unless TensorFlow executes eagerly."""
    import tensorflow as tf

    return not tf.executing_eagerly()


def defun(func: Any = None, input_signature: Any = None, autograph: bool = True) -> Any:
    """Compiles a function into a graph function: `tf.function`.

    Example:
      >>> import tensorflow as tf
      >>> defun(lambda x: x + 1, autograph=False).__class__.__name__
      'Function'
    """
    import tensorflow as tf

    return tf.function(func, input_signature=input_signature, autograph=autograph)


def _build(key: str) -> Any:
    import tensorflow as tf

    return tf.sysconfig.get_build_info().get(key)


def __getattr__(name: str) -> Any:
    keys = {
        "is_cuda_build": "is_cuda_build",
        "is_rocm_build": "is_rocm_build",
        "cuda_version_number": "cuda_version",
        "cudnn_version_number": "cudnn_version",
    }
    if name not in keys:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _build(keys[name])
