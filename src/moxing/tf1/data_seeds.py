"""The order of shuffled data, fixed by the run where the script did not fix it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.data.util import random_seed

#: The seed of the run whose input is being built.
_run_seed: ContextVar[int | None] = ContextVar("moxing_run_seed", default=None)

_SEEDED_DATASETS = ("moxing/seeded_datasets",)


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
    token = _run_seed.set(seed)
    try:
        yield
    finally:
        random_seed.get_seed = original
        _run_seed.reset(token)


def dataset_seed() -> tuple[int, int]:
    """The seed for the next data set of ours in this graph: from the script's graph seed, else from the run's.

    Outside a run and without a graph seed it is a new one every time.

    Example:
      >>> with tf.Graph().as_default():
      ...     tf.set_random_seed(3)
      ...     dataset_seed(), dataset_seed()
      ((3, 1), (3, 2))
    """
    graph = tf.get_default_graph()
    graph.add_to_collection(_SEEDED_DATASETS, True)
    number = len(graph.get_collection_ref(_SEEDED_DATASETS))
    seed = graph.seed if graph.seed is not None else _run_seed.get()
    if seed is None:
        seed = random.SystemRandom().randrange(1, 2**31)
    return int(seed) % 2**31, number
