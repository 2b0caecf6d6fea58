"""Variables that may be spread over several parameter servers: their norms, and what is done beside them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tf1.variables import saved_name


def beside(variable: tf.Variable) -> AbstractContextManager[Any]:
    """Inside, operations go to the device of a variable, where it has been given one."""
    return tf.device(variable.device) if variable.device else nullcontext()


def whole_norms(tensors: Sequence[Any], variables: Sequence[tf.Variable]) -> list[tf.Tensor]:
    """For every tensor the Euclidean norm; those that belong to slices of one variable have one in common.

    Args:
      tensors: tensors, or `tf.IndexedSlices`.
      variables: what each of them is a value or gradient of.

    Returns:
      Scalars, of 32 bits for tensors of fewer.

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
        # Where the variable is: a number travels, not the values.
        with beside(variable):
            values = (
                summed_rows(tensor).values if isinstance(tensor, tf.IndexedSlices) else tf.convert_to_tensor(tensor)
            )
            wide = tf.cast(values, tf.float32) if values.dtype.size < 4 else values
            squares.setdefault(name, []).append(tf.reduce_sum(tf.square(wide)))
    norms = {name: tf.sqrt(parts[0] if len(parts) == 1 else tf.add_n(parts)) for name, parts in squares.items()}
    return [norms[name] for name in names]


def summed_rows(slices: tf.IndexedSlices) -> tf.IndexedSlices:
    """The same gradient with every row named once.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     once = summed_rows(tf.IndexedSlices(tf.constant([1.0, 2.0, 3.0]), tf.constant([4, 0, 4])))
      ...     print(session.run([once.indices, once.values]))
      [array([4, 0], dtype=int32), array([4., 2.], dtype=float32)]
    """
    rows, place = tf.unique(slices.indices)
    values = tf.math.unsorted_segment_sum(slices.values, place, tf.shape(rows)[0])
    return tf.IndexedSlices(values, rows, slices.dense_shape)
