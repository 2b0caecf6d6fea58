"""Variables that may be partitioned over several parameter servers: placement next to them, and their norms."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tf1.graph.variables import saved_name


def colocated_with(variable: tf.Variable) -> AbstractContextManager[Any]:
    """Places operations on the device of a variable, if it has one."""
    return tf.device(variable.device) if variable.device else nullcontext()


def whole_norms(tensors: Sequence[Any], variables: Sequence[tf.Variable]) -> list[tf.Tensor]:
    """Returns the Euclidean norm of every tensor; partitions of one variable share the norm of the whole.

    Args:
      tensors: tensors, or `tf.IndexedSlices`.
      variables: for every tensor the variable that it is a value or gradient of.

    Returns:
      Scalars of at least 32 bits.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable('w', [4, 2], initializer=tf.ones_initializer(),
      ...                         partitioner=tf.fixed_size_partitioner(2), use_resource=True)
      ...     session.run(tf.global_variables_initializer())
      ...     print(session.run(whole_norms(list(w), list(w))))
      [np.float32(2.828427), np.float32(2.828427)]
    """
    squares: dict[str, list[tf.Tensor]] = {}
    names = [saved_name(variable) for variable in variables]
    for tensor, variable, name in zip(tensors, variables, names, strict=True):
        # On the device of the variable: only one number is sent.
        with colocated_with(variable):
            values = (
                summed_rows(tensor).values if isinstance(tensor, tf.IndexedSlices) else tf.convert_to_tensor(tensor)
            )
            wide = tf.cast(values, tf.float32) if values.dtype.size < 4 else values
            squares.setdefault(name, []).append(tf.reduce_sum(tf.square(wide)))
    norms = {name: tf.sqrt(parts[0] if len(parts) == 1 else tf.add_n(parts)) for name, parts in squares.items()}
    return [norms[name] for name in names]


def summed_rows(slices: tf.IndexedSlices) -> tf.IndexedSlices:
    """Returns the same gradient with every row only once.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     once = summed_rows(tf.IndexedSlices(tf.constant([1.0, 2.0, 3.0]), tf.constant([4, 0, 4])))
      ...     print(session.run([once.indices, once.values]))
      [array([4, 0], dtype=int32), array([4., 2.], dtype=float32)]
    """
    rows, positions = tf.unique(slices.indices)
    values = tf.math.unsorted_segment_sum(slices.values, positions, tf.shape(rows)[0])
    return tf.IndexedSlices(values, rows, slices.dense_shape)
