"""`variable += value` for resource variables, as the variables of TensorFlow 1 had it."""

from __future__ import annotations

_OPERATORS = ("__iadd__", "__isub__", "__imul__", "__idiv__", "__itruediv__", "__irealdiv__", "__ipow__")


def install() -> None:
    """Lets `variable += value` bind the name to the tensor `variable + value`; the variable itself does not change.

    Resource variables have these operators only to refuse them. Without them Python uses `__add__`.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> install()
      >>> with tf.Graph().as_default():
      ...     x = tf.get_variable('x', initializer=1.0)
      ...     x += 1.0
      ...     isinstance(x, tf.Tensor)
      True
    """
    from tensorflow.python.ops import resource_variable_ops

    kind = resource_variable_ops.BaseResourceVariable
    for name in _OPERATORS:
        if name in vars(kind):
            delattr(kind, name)
