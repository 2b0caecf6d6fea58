"""Which old checkpoints are kept for good: one every n hours, `--keep_checkpoint_every_n_hours`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moxing.framework.flags import FLAGS, FlagError

#: The key of the state in the JSON of a checkpoint.
KEY = "moxing/keep_every_n_hours"


class Retention:
    """Sorts checkpoints into those to keep for good, the newest, and those to remove.

    Args:
      newest: number of the newest checkpoints, which are always kept.
      hours: hours between checkpoints that are kept for good; None: none.
      state: what `state` returned when the newest checkpoint was written.
      now: the clock.

    Example:
      >>> clock = iter([0.0, 0.0, 1800.0, 3600.0, 5400.0])
      >>> retention = Retention(1, hours=1.0, now=lambda: next(clock))
      >>> [retention.sort(saved)[1] for saved in (['a'], ['a', 'b'], ['b', 'c'], ['c', 'd'])]
      [[], ['a'], ['b'], []]
      >>> retention.sort(['c', 'd'])
      (['c', 'd'], [])
    """

    def __init__(
        self,
        newest: int,
        hours: float | None = None,
        state: Mapping[str, Any] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._newest, self._seconds, self._now = newest, hours and hours * 3600, now
        state = state or {}
        self._kept: list[str] = list(state.get("kept", ()))
        self._due = float(state.get("due") or now() + (self._seconds or 0))
        self._saved: dict[str, float] = {}

    def sort(self, prefixes: Sequence[str]) -> tuple[list[str], list[str]]:
        """Returns the checkpoints to keep and those to remove, both oldest first. Call it after every save.

        Args:
          prefixes: all checkpoints, oldest first.
        """
        names = {prefix: os.path.basename(prefix) for prefix in prefixes}
        for name in names.values():
            if name not in self._saved:
                self._saved[name] = self._now()
        old = [prefix for prefix in prefixes if names[prefix] not in self._kept]
        old = old[: -self._newest]
        if self._seconds:
            for prefix in old:
                if self._saved[names[prefix]] >= self._due:
                    self._kept.append(names[prefix])
                    self._due = self._saved[names[prefix]] + self._seconds
        removed = [prefix for prefix in old if names[prefix] not in self._kept]
        return [prefix for prefix in prefixes if prefix not in removed], removed

    def state(self) -> dict[str, Any]:
        """What a resumed run needs to know; empty if nothing is kept for good."""
        if not self._seconds and not self._kept:
            return {}
        return {KEY: {"kept": self._kept, "due": self._due}}


def hours_to_keep() -> float | None:
    """Returns `--keep_checkpoint_every_n_hours`.

    Raises:
      FlagError: it is not a positive number.

    Example:
      >>> hours_to_keep() is None
      True
    """
    hours: float | None = FLAGS.get("keep_checkpoint_every_n_hours")
    if hours is not None and not 0 < hours < math.inf:
        raise FlagError(f"--keep_checkpoint_every_n_hours={hours:g}: expected a number above 0.")
    return hours
