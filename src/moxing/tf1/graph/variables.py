"""Name, shape and initial value of a variable in a checkpoint, also for slices of partitioned variables."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


def saved_name(variable: tf.Variable) -> str:
    """Returns the name of a variable in a checkpoint. The slices of a partitioned variable share one name.

    Example:
      >>> with tf.Graph().as_default():
      ...     saved_name(tf.get_variable('net/w', shape=[2]))
      'net/w'
    """
    info = variable._get_save_slice_info()
    return str(info.full_name if info is not None else variable.op.name)


def saved_shape(variable: tf.Variable) -> list[int]:
    """Returns the shape of a variable in a checkpoint. For a slice this is the shape of the whole variable.

    Example:
      >>> with tf.Graph().as_default():
      ...     saved_shape(tf.get_variable('w', shape=[2, 3]))
      [2, 3]
    """
    info = variable._get_save_slice_info()
    return list(info.full_shape if info is not None else variable.shape.as_list())


def share_saved_name(copied: tf.Variable, variable: tf.Variable) -> None:
    """Saves a variable and its copy under one name and shape.

    If the copy is a slice of a partitioned variable, only the copy knows the slice: the variable gets it too.

    Example:
      >>> with tf.Graph().as_default():
      ...     variable, copied = tf.get_variable('w', shape=[2]), tf.get_variable('w/copy', shape=[2])
      ...     share_saved_name(copied, variable)
      ...     saved_name(copied)
      'w'
    """
    info = copied._get_save_slice_info()
    if info is not None:
        variable._set_save_slice_info(info)
        return
    shape = variable.shape.as_list()
    copied._set_save_slice_info(tf.Variable.SaveSliceInfo(variable.op.name, shape, [0] * len(shape), shape))


def initialize_like(variable: tf.Variable, other: tf.Variable) -> None:
    """Makes the initializer of `variable` assign the initial value of `other`.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w, v = (tf.get_variable(name, initializer=value) for name, value in (('w', 1.0), ('v', 2.0)))
      ...     initialize_like(w, v)
      ...     session.run(w.initializer)
      ...     print(session.run(w))
      2.0
    """
    variable._initial_value = other._initial_value
    variable._initializer_op = tf.assign(variable, other._initial_value).op
