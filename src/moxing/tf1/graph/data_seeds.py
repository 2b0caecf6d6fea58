"""Seeds for shuffled data that the script did not seed, so that a resumed run sees the same order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.data.util import random_seed

#: Seed of the run whose input is being built.
_run_seed: ContextVar[int | None] = ContextVar("moxing_run_seed", default=None)

_SEEDED_DATASETS = ("moxing/seeded_datasets",)


@contextmanager
def data_seeds(seed: int) -> Iterator[None]:
    """Gives datasets that shuffle without a seed one that is derived from `seed`.

    A resumed run then reads its data in the same order as the first run. Seeds that the script set, for a dataset or
    for the graph, stay. Random operations outside datasets are not affected.

    Args:
      seed: the seed of the run.

    Example:
      >>> def order():
      ...     with tf.Graph().as_default(), data_seeds(7), tf.Session() as session:
      ...         numbers = tf.data.Dataset.range(100).shuffle(100).batch(100)
      ...         return session.run(tf.data.make_one_shot_iterator(numbers).get_next()).tolist()
      >>> order() == order()
      True
    """
    original = random_seed.get_seed
    seeded = 0

    def get_seed(operation_seed: Any) -> Any:
        nonlocal seeded
        if operation_seed is not None or tf.get_default_graph().seed is not None:
            return original(operation_seed)
        seeded += 1
        return tf.constant(seed, tf.int64), tf.constant(seeded, tf.int64)

    random_seed.get_seed = get_seed
    token = _run_seed.set(seed)
    try:
        yield
    finally:
        random_seed.get_seed = original
        _run_seed.reset(token)


def dataset_seed() -> tuple[int, int]:
    """Returns the seed for the next MoXing dataset in this graph.

    It is derived from the graph seed of the script, or from the seed of the run. Without either it is random.

    Returns:
      The seed, and the number of the dataset within the graph.

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
