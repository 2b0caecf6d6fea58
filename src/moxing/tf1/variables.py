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


def save_as(copied: tf.Variable, variable: tf.Variable) -> None:
    """Gives a copy and its variable one name and shape in checkpoints.

    Where the copy is a slice of a partitioned variable, TensorFlow has told that to the copy alone.

    Example:
      >>> with tf.Graph().as_default():
      ...     variable, copied = tf.get_variable('w', shape=[2]), tf.get_variable('w/copy', shape=[2])
      ...     save_as(copied, variable)
      ...     saved_name(copied)
      'w'
    """
    info = copied._get_save_slice_info()
    if info is not None:
        variable._set_save_slice_info(info)
        return
    shape = variable.shape.as_list()
    copied._set_save_slice_info(tf.Variable.SaveSliceInfo(variable.op.name, shape, [0] * len(shape), shape))


def begin_as(variable: tf.Variable, other: tf.Variable) -> None:
    """Lets the initializer of a variable give it what that of another one gives to that.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w, v = (tf.get_variable(name, initializer=value) for name, value in (('w', 1.0), ('v', 2.0)))
      ...     begin_as(w, v)
      ...     session.run(w.initializer)
      ...     print(session.run(w))
      2.0
    """
    variable._initial_value = other._initial_value
    variable._initializer_op = tf.assign(variable, other._initial_value).op
