"""The order of shuffled data, fixed by the run where the script did not fix it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.data.util import random_seed


@contextmanager
def data_seeds(seed: int) -> Iterator[None]:
    """Inside, data sets that shuffle without a seed of their own get one that follows from `seed`.

    A resumed run then finds its data in the order in which the first run saw it. Seeds that the script gave, to the
    data set or to the graph, stay; random operations outside data sets are not touched.

    Example:
      >>> def order():
      ...     with tf.Graph().as_default(), data_seeds(7), tf.Session() as session:
      ...         numbers = tf.data.Dataset.range(100).shuffle(100).batch(100)
      ...         return session.run(tf.data.make_one_shot_iterator(numbers).get_next()).tolist()
      >>> order() == order()
      True
    """
    original = random_seed.get_seed
    given = 0

    def get_seed(operation_seed: Any) -> Any:
        nonlocal given
        if operation_seed is not None or tf.get_default_graph().seed is not None:
            return original(operation_seed)
        given += 1
        return tf.constant(seed, tf.int64), tf.constant(given, tf.int64)

    random_seed.get_seed = get_seed
    try:
        yield
    finally:
        random_seed.get_seed = original
