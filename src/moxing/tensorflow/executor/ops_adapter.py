"""Which worker this is, for scripts that shard their data themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moxing.tensorflow.cluster.roles import current_role

#: Lists that are told when somebody asks.
_listeners: list[list[str]] = []


def rank() -> int:
    """The number of this worker; the chief's is 0.

    Example:
      >>> rank()
      0
    """
    _notice("rank")
    return current_role().index


def size() -> int:
    """How many workers there are.

    Example:
      >>> size()
      1
    """
    _notice("size")
    return current_role().num_workers


@contextmanager
def noticed() -> Iterator[list[str]]:
    """Gives a list of what was asked inside: who asks, shards the data himself.

    Example:
      >>> with noticed() as asked:
      ...     size()
      1
      >>> asked
      ['size']
    """
    asked: list[str] = []
    _listeners.append(asked)
    try:
        yield asked
    finally:
        _listeners.remove(asked)


def _notice(what: str) -> None:
    for listener in _listeners:
        listener.append(what)
