"""What a variable is called, and how large it is, in a checkpoint."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


def saved_name(variable: tf.Variable) -> str:
    """The variable's name in a checkpoint; the slices of a partitioned variable share one.

    Example:
      >>> with tf.Graph().as_default():
      ...     saved_name(tf.get_variable('net/w', shape=[2]))
      'net/w'
    """
    info = variable._get_save_slice_info()
    return str(info.full_name if info is not None else variable.op.name)


def saved_shape(variable: tf.Variable) -> list[int]:
    """The variable's shape in a checkpoint; for a slice that of the whole.

    Example:
      >>> with tf.Graph().as_default():
      ...     saved_shape(tf.get_variable('w', shape=[2, 3]))
      [2, 3]
    """
    info = variable._get_save_slice_info()
    return list(info.full_shape if info is not None else variable.shape.as_list())
