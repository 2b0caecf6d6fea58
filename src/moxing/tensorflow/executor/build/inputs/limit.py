"""Cuts batches to a number of samples, for an evaluation of some of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.build.inputs.inputs import Leaf, batch_length


def first_samples(batches: tf.data.Dataset, limit: tf.Tensor) -> tf.data.Dataset:
    """The first `limit` samples of a dataset of batches; the last batch is cut.

    Args:
      batches: tensors as long as the first one have one sample per row; others are not cut.
      limit: the number of samples, -1 for all.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     batches = tf.data.Dataset.range(10).batch(4).map(lambda number: (number, number + 1, [1, 2, 3]))
      ...     batch = tf.data.make_one_shot_iterator(first_samples(batches, tf.constant(6, tf.int64))).get_next()
      ...     for _ in range(2):
      ...         print([part.tolist() for part in session.run(batch)])
      [[0, 1, 2, 3], [1, 2, 3, 4], [1, 2, 3]]
      [[4, 5], [5, 6], [1, 2, 3]]
    """
    unlimited = np.int64(np.iinfo(np.int64).max)

    def cut(left: tf.Tensor, element: Any) -> Any:
        length = batch_length(tf.nest.flatten(element))
        taken = tf.minimum(length, left)
        rows = tf.nest.map_structure(lambda leaf: _first_rows(leaf, length, taken), element)
        return left - taken, (rows, taken)

    cut_batches = batches.scan(tf.where(limit < 0, unlimited, limit), cut).take_while(lambda _, taken: taken > 0)
    return cut_batches.map(lambda element, _: element)


def _first_rows(leaf: Leaf, length: tf.Tensor, count: tf.Tensor) -> Leaf:
    """The first `count` rows of a tensor with `length` rows; any other tensor stays as it is."""
    if isinstance(leaf, tf.SparseTensor):
        rows = tf.where(tf.equal(leaf.dense_shape[0], length), count, leaf.dense_shape[0])
        shape = tf.concat([rows[None], leaf.dense_shape[1:]], 0)
        return tf.sparse.slice(leaf, tf.zeros_like(shape), shape)
    if not leaf.shape.rank:
        return leaf
    own = tf.shape(leaf, out_type=tf.int64)[0]
    return leaf[: tf.where(tf.equal(own, length), count, own)]
