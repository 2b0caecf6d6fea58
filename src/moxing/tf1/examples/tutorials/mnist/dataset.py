"""One split of MNIST (train, validation or test), with the batches of the TensorFlow 1 tutorial."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_FAKE_EXAMPLES = 10000
_FAKE_PIXELS = 784
_CLASSES = 10


class DataSet:
    """Images and labels in memory, returned in batches.

    A new epoch shuffles indices and copies no images: `next_batch` gathers only its own rows.

    Args:
      images: uint8 of shape [count, rows, columns, 1].
      labels: one row per image.
      fake_data: whether to hold no data and return batches of ones, for a dry run.
      one_hot: whether the labels of fake batches are one-hot.
      dtype: uint8 for [0, 255] or float32 for [0, 1]; a TensorFlow or NumPy type.
      reshape: whether to flatten images to [count, rows * columns].
      seed: seed for shuffling. Default: the graph-level seed of TensorFlow, or else `numpy.random`.

    Example:
      >>> images = np.arange(12, dtype=np.uint8).reshape(3, 2, 2, 1)
      >>> data = DataSet(images, np.array([5, 6, 7]), dtype=np.uint8)
      >>> batch, labels = data.next_batch(2, shuffle=False)
      >>> batch.shape, labels.tolist()
      ((2, 4), [5, 6])
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = np.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        self.one_hot = one_hot
        self._fake = fake_data
        self._epochs_completed = 0
        self._position = 0
        self._random = _random_source(seed)
        if fake_data:
            self._number = _FAKE_EXAMPLES
            self._images, self._labels = images, labels
            return
        if len(images) != len(labels):
            raise ValueError(f"expected as many labels as images, got {len(images)} images and {len(labels)} labels")
        if reshape:
            images = images.reshape(len(images), int(np.prod(images.shape[1:])))
        self._number = len(images)
        self._images = _scaled(images, dtype)
        self._labels = labels
        # None means the order of the file, until the first shuffled batch.
        self._order: np.ndarray | None = None

    @property
    def images(self) -> np.ndarray:
        """All images, in the order of the file."""
        return self._images

    @property
    def labels(self) -> np.ndarray:
        """All labels, in the order of the file."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """The number of examples in an epoch."""
        return self._number

    @property
    def epochs_completed(self) -> int:
        """The number of completed epochs."""
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """Returns the next `batch_size` examples.

        If an epoch ends inside a batch, the batch continues with the next epoch. So every batch is full and no example
        is left out.

        Args:
          batch_size: number of examples; may be larger than an epoch.
          fake_data: whether to return ones.
          shuffle: whether to shuffle at the start of an epoch. The order of a running epoch does not change.

        Returns:
          Images and labels, which the caller may modify.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if fake_data or self._fake:
            return self._fake_batch(batch_size)
        if self._number == 0:
            raise ValueError("next_batch on an empty dataset (is validation_size 0?)")
        if shuffle and self._epochs_completed == 0 and self._position == 0:
            self._shuffle()
        stop = self._position + batch_size
        if stop <= self._number:
            rows = self._rows(self._position, stop)
            self._position = stop
        else:
            rows = self._rows_across_epochs(batch_size, shuffle)
        return self._images.take(rows, axis=0), self._labels.take(rows, axis=0)

    def _rows_across_epochs(self, batch_size: int, shuffle: bool) -> np.ndarray:
        pieces = [self._rows(self._position, self._number)]
        missing = batch_size - len(pieces[0])
        while missing:
            self._epochs_completed += 1
            if shuffle:
                self._shuffle()
            self._position = min(missing, self._number)
            pieces.append(self._rows(0, self._position))
            missing -= self._position
        return np.concatenate(pieces)

    def _rows(self, start: int, stop: int) -> np.ndarray:
        if self._order is None:
            return np.arange(start, stop)
        return self._order[start:stop]

    def _shuffle(self) -> None:
        permutation = np.arange(self._number)
        self._random.shuffle(permutation)
        # The tutorial permuted the permuted images: composing gives the batches that a seed gave in 2018.
        self._order = permutation if self._order is None else self._order[permutation]

    def _fake_batch(self, batch_size: int) -> tuple[list[list[int]], list[Any]]:
        label = [1] + [0] * (_CLASSES - 1) if self.one_hot else 0
        return [[1] * _FAKE_PIXELS for _ in range(batch_size)], [label for _ in range(batch_size)]


def _scaled(images: np.ndarray, dtype: Any) -> np.ndarray:
    wanted = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
    if wanted == np.uint8:
        return images
    if wanted != np.float32:
        raise TypeError(f"dtype must be uint8 or float32, got {dtype!r}")
    scaled: np.ndarray = images.astype(np.float32)
    scaled *= np.float32(1.0 / 255.0)
    return scaled


def _random_source(seed: int | None) -> Any:
    if seed is None and "tensorflow" in sys.modules:
        # tf.set_random_seed also seeded the shuffling of the tutorial.
        seed = sys.modules["tensorflow"].compat.v1.get_seed(None)[0]
    # numpy.random itself, so that numpy.random.seed(...) of a script gives the same batches as in 2018.
    return np.random if seed is None else np.random.RandomState(seed % 2**32)
