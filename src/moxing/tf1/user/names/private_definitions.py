"""Private functions of TensorFlow 1 that exist nowhere today, but that public programs import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from moxing.tf1.contrib._cells.linear import Linear as _Linear

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
