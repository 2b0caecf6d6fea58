"""Which sample stands at which position of the data, epoch after epoch.

The order of an epoch follows from the seed and the epoch's number alone. So the place in the data is one number, and
going on from it takes no longer at the millionth sample than at the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np


class SampleOrder:
    """The sequence of sample numbers that a data set delivers.

    Args:
      count: samples in an epoch.
      epochs: how many epochs; None: without end.
      seed: two numbers; None: every epoch in the order of the samples.
      runs: where samples that lie one after the other on the disk are to be read about together: the lengths of
        such runs, which sum to `count`.
      mixed: over how many samples the order is mixed, when there are `runs`.

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
        mixed: int = 1,
    ) -> None:
        self.count = count
        self.total = None if epochs is None else count * epochs
        self._seed = seed
        self._runs = None if runs is None or mixed >= count else np.asarray(runs, np.int64)
        self._mixed = mixed
        # Positions come in order, with little going back and forth around the end of an epoch.
        self._epoch = lru_cache(maxsize=2)(self._order_of)

    def shard(self, workers: int, index: int) -> SampleOrder:
        """The order of worker `index`: every `workers`-th position, beginning with its own.

        Example:
          >>> [SampleOrder(5, epochs=2).shard(2, worker).numbers(np.arange(5)).tolist() for worker in range(2)]
          [[0, 2, 4, 1, 3], [1, 3, 0, 2, 4]]
        """
        return _Shard(self, workers, index)

    def numbers(self, positions: np.ndarray) -> np.ndarray:
        """The sample numbers at `positions`."""
        epochs, places = np.divmod(positions, self.count)
        if self._seed is None:
            return places
        numbers = np.empty_like(places)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            numbers[here] = self._epoch(int(epoch))[places[here]]
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
        stretch: np.ndarray = np.arange(self.count) // self._mixed
        return numbers[np.argsort(stretch + generator.random(self.count), kind="stable")]


class _Shard(SampleOrder):
    """A part of another order, with positions of its own."""

    def __init__(self, whole: SampleOrder, workers: int, index: int) -> None:
        super().__init__(whole.count)
        self._whole, self._workers, self._index = whole, workers, index
        self.total = None if whole.total is None else max(0, -((index - whole.total) // workers))

    def numbers(self, positions: np.ndarray) -> np.ndarray:
        return self._whole.numbers(positions * self._workers + self._index)
