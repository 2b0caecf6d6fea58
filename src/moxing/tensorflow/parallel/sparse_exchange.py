"""The exchange of compressed gradients: which values a worker sends in a step, and the sums over all workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from moxing.tensorflow.cluster.ring import BufferPool, Ring
from moxing.tensorflow.optimizer.wrappers.compression import Compressor, Settings

#: Type of the positions in a message.
_POSITIONS = np.dtype(np.uint32)


class SparseExchange:
    """What a worker sends of all its gradients in a step, and the sums that result from it.

    Args:
      ring: connects the workers.

    Attributes:
      sent: bytes that the last step passed to the ring: small variables as a whole, positions and values of the others.

    Example:
      >>> class OneWorker:
      ...     def all_reduce(self, values): return values
      ...     def all_gather(self, values): return [values]
      >>> from moxing.tensorflow.optimizer.wrappers.compression import settings
      >>> exchange = SparseExchange(OneWorker())
      >>> compress = exchange.add(4, np.dtype('float32'), settings(sparsity_strategy='0.75', min_size_in_kb=0))
      >>> count = compress(np.array([1, 3, 2, -8], np.float32), step=0, samples=1)
      >>> exchange.all_reduce(count)[0].tolist()
      [0.0, 0.0, 0.0, -8.0]
    """

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._sizes: list[int] = []
        self._types: list[np.dtype] = []
        self._is_dense: list[bool] = []
        self._selected: list[Any] = []
        self._buffers = BufferPool()
        self.sent = 0

    def add(self, size: int, dtype: np.dtype, how: Settings) -> Callable[..., np.int64]:
        """Adds a variable; returns a function of gradient, step and samples that compresses its gradient."""
        index = len(self._sizes)
        self._sizes.append(size)
        self._types.append(dtype)
        self._is_dense.append(size * dtype.itemsize < how.min_bytes)
        self._selected.append(None)
        compressor = Compressor(size, dtype, how.momentum or 0.0, bool(how.nesterov), how.masking)
        most_samples = 0

        def compress(gradient: np.ndarray, step: int, samples: int) -> np.int64:
            nonlocal most_samples
            most_samples = max(most_samples, int(samples))  # the last batch of an epoch is shorter
            if self._is_dense[index]:
                self._selected[index] = compressor.whole(gradient)
                return np.int64(size)
            positions, values = compressor.select(gradient, how.sparsity(int(step), most_samples))
            self._selected[index] = (positions, values)
            return np.int64(values.size)

        return compress

    def all_reduce(self, count: np.int64) -> list[np.ndarray]:
        """Sends the selected values of all variables; returns for every variable the sum over all workers, flat.

        Args:
          count: number of selected values; orders the calls in the graph.
        """
        del count
        sums: list[np.ndarray | None] = [None] * len(self._sizes)
        self.sent = 0
        self._reduce_dense(sums)
        self._reduce_sparse(sums)
        return sums  # type: ignore[return-value]

    def _reduce_dense(self, sums: list[np.ndarray | None]) -> None:
        dense = self._indices(dense=True)
        for dtype in sorted({self._types[index] for index in dense}, key=str):
            indices = [index for index in dense if self._types[index] == dtype]
            packed = np.concatenate([self._selected[index] for index in indices])
            self.sent += packed.nbytes
            total = self._ring.all_reduce(packed)
            ends = np.cumsum([self._sizes[index] for index in indices])
            for index, part in zip(indices, np.split(total, ends[:-1]), strict=True):
                sums[index] = part.copy()

    def _reduce_sparse(self, sums: list[np.ndarray | None]) -> None:
        sparse = self._indices(dense=False)
        if not sparse:
            return
        message = self._message(sparse)
        self.sent += message.nbytes
        messages = self._ring.all_gather(message)
        for index in sparse:
            sums[index] = zeros = self._buffers.array(self._sizes[index], self._types[index])
            zeros.fill(0)
        for each in messages:  # in the order of the workers: all workers add in the same order
            self._add_message(each, sparse, sums)

    def _indices(self, dense: bool) -> list[int]:
        return [index for index, is_dense in enumerate(self._is_dense) if is_dense is dense]

    def _message(self, sparse: Sequence[int]) -> np.ndarray:
        """The number of values of every variable, then all positions and values, as bytes."""
        counts = np.array([self._selected[index][1].size for index in sparse], _POSITIONS)
        parts = [counts, *(part for index in sparse for part in self._selected[index])]
        return np.concatenate([part.view(np.uint8) for part in parts])

    def _add_message(self, message: np.ndarray, sparse: Sequence[int], sums: Sequence[Any]) -> None:
        data, start = message.data, len(sparse) * _POSITIONS.itemsize
        counts = np.frombuffer(data, _POSITIONS, len(sparse))
        for index, count in zip(sparse, counts.tolist(), strict=True):
            positions = np.frombuffer(data, _POSITIONS, count, start)
            start += positions.nbytes
            values = np.frombuffer(data, self._types[index], count, start)
            start += values.nbytes
            # A position is in the message of one worker only once.
            sums[index][positions] += values
