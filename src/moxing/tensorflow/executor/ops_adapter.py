"""Which worker this is, for scripts that shard their data themselves."""

from __future__ import annotations


def rank() -> int:
    """The number of this worker. In this version there is one worker, number 0.

    Example:
      >>> rank()
      0
    """
    return 0


def size() -> int:
    """How many workers there are.

    Example:
      >>> size()
      1
    """
    return 1
