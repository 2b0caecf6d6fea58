"""`mox.get_collection`: what the current tower's `model_fn` put into the graph's collections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

_SNAPSHOT_KEY = "moxing/collections_before_tower"


def get_collection(key: str) -> list[Any]:
    """Like `tf.get_collection`, but only what this tower's `model_fn` created.

    Example:
      >>> with tf.Graph().as_default():
      ...     tf.add_to_collection('mine', 1)
      ...     get_collection('mine')
      [1]
    """
    graph = tf.get_default_graph()
    snapshots = graph.get_collection_ref(_SNAPSHOT_KEY)
    before = snapshots[-1].get(key, 0) if snapshots else 0
    return graph.get_collection(key)[before:]


@contextmanager
def tower_collections() -> Iterator[None]:
    """Inside, `get_collection` leaves out what was in the graph before."""
    graph = tf.get_default_graph()
    keys = [key for key in graph.get_all_collection_keys() if key != _SNAPSHOT_KEY]
    snapshots = graph.get_collection_ref(_SNAPSHOT_KEY)
    snapshots.append({key: len(graph.get_collection_ref(key)) for key in keys})
    try:
        yield
    finally:
        snapshots.pop()
