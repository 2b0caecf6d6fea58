"""The order of the samples: which sample is at which position of the data, epoch after epoch.

The order of an epoch depends only on the seed and the number of the epoch. So the position in the data is one number,
and resuming at the millionth sample takes no longer than starting at the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np


class SampleOrder:
    """The sequence of sample numbers that a dataset delivers.

    Args:
      count: the number of samples in an epoch.
      epochs: the number of epochs; None for no end.
      seed: two numbers; None does not shuffle.
      runs: the lengths of runs of samples that are neighbours on the disk and should be read at about the same time;
        they sum to `count`.
      shuffled_over: the number of samples to shuffle over within the order of the `runs`.

    Example:
      >>> order = SampleOrder(4, epochs=2, seed=(1, 1))
      >>> sorted(order.numbers(np.arange(4)).tolist()), sorted(order.numbers(np.arange(4, 8)).tolist())
      ([0, 1, 2, 3], [0, 1, 2, 3])
    """

    def __init__(
        self,
        count: int,
        epochs: int | None = None,
        seed: tuple[int, int] | None = None,
        runs: Sequence[int] | None = None,
        shuffled_over: int = 1,
    ) -> None:
        self.count = count
        self.total = None if epochs is None else count * epochs
        self._seed = seed
        self._runs = None if runs is None or shuffled_over >= count else np.asarray(runs, np.int64)
        self._shuffled_over = shuffled_over
        # Positions come in order, except for a few around the end of an epoch.
        self._epoch = lru_cache(maxsize=2)(self._order_of)

    def shard(self, workers: int, index: int) -> SampleOrder:
        """Returns the order of worker `index`: every `workers`-th position, starting at `index`.

        Example:
          >>> [SampleOrder(5, epochs=2).shard(2, worker).numbers(np.arange(5)).tolist() for worker in range(2)]
          [[0, 2, 4, 1, 3], [1, 3, 0, 2, 4]]
        """
        return _Shard(self, workers, index)

    def numbers(self, positions: np.ndarray) -> np.ndarray:
        """Returns the sample numbers at `positions`."""
        epochs, offsets = np.divmod(positions, self.count)
        if self._seed is None:
            return offsets
        numbers = np.empty_like(offsets)
        for epoch in np.unique(epochs):
            in_epoch = epochs == epoch
            numbers[in_epoch] = self._epoch(int(epoch))[offsets[in_epoch]]
        return numbers

    def _order_of(self, epoch: int) -> np.ndarray:
        first, second = self._seed or (0, 0)
        generator = np.random.Generator(np.random.Philox(key=np.array([first << 32 | second, epoch], np.uint64)))
        if self._runs is None:
            return generator.permutation(self.count)
        starts = np.concatenate([[0], np.cumsum(self._runs)[:-1]])
        order = generator.permutation(len(self._runs))
        lengths = self._runs[order]
        before = np.cumsum(lengths) - lengths
        numbers = np.arange(self.count) + np.repeat(starts[order] - before, lengths)
        stretch: np.ndarray = np.arange(self.count) // self._shuffled_over
        return numbers[np.argsort(stretch + generator.random(self.count), kind="stable")]


class _Shard(SampleOrder):
    """A shard of another order, with its own positions."""

    def __init__(self, whole: SampleOrder, workers: int, index: int) -> None:
        super().__init__(whole.count)
        self._whole, self._workers, self._index = whole, workers, index
        self.total = None if whole.total is None else max(0, -((index - whole.total) // workers))

    def numbers(self, positions: np.ndarray) -> np.ndarray:
        return self._whole.numbers(positions * self._workers + self._index)
