"""Rank and number of workers, for scripts that shard their data themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moxing.tensorflow.cluster import current_role

#: Lists that record the calls of `rank` and `size`.
_listeners: list[list[str]] = []


def rank() -> int:
    """The index of this worker; the chief has 0.

    Example:
      >>> rank()
      0
    """
    _record("rank")
    return current_role().index


def size() -> int:
    """The number of workers.

    Example:
      >>> size()
      1
    """
    _record("size")
    return current_role().num_workers


@contextmanager
def recorded_calls() -> Iterator[list[str]]:
    """Records the calls of `rank` and `size` inside: code that calls them shards the data itself.

    Example:
      >>> with recorded_calls() as calls:
      ...     size()
      1
      >>> calls
      ['size']
    """
    calls: list[str] = []
    _listeners.append(calls)
    try:
        yield calls
    finally:
        _listeners.remove(calls)


def _record(name: str) -> None:
    for listener in _listeners:
        listener.append(name)
