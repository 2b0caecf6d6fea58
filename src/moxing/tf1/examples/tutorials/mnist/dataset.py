"""One part of MNIST (train, validation or test) with the batches of the TensorFlow 1 tutorial."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_FAKE_EXAMPLES = 10000
_FAKE_PIXELS = 784
_CLASSES = 10


class DataSet:
    """Images and labels in memory, handed out in batches.

    The order is kept as an index, so that a new epoch shuffles numbers and never copies the images: `next_batch`
    gathers its own rows only.

    Args:
      images: uint8 of shape [number, rows, columns, 1].
      labels: One row per image.
      fake_data: Holds no data; every batch is made of ones (a dry run of the tutorial).
      one_hot: Only tells fake batches what a label looks like.
      dtype: uint8 keeps [0, 255]; float32 scales to [0, 1]. A TensorFlow or NumPy type.
      reshape: Flattens images to [number, rows * columns].
      seed: Of the shuffling. None takes the graph-level seed of TensorFlow if there is one, else `numpy.random`.

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
            raise ValueError(f"images and labels must be of one number: {len(images)} images, {len(labels)} labels")
        if reshape:
            images = images.reshape(len(images), int(np.prod(images.shape[1:])))
        self._number = len(images)
        self._images = _scaled(images, dtype)
        self._labels = labels
        # None is the order of the file. It stays None until somebody asks for a shuffled batch.
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
        """How many examples one epoch has."""
        return self._number

    @property
    def epochs_completed(self) -> int:
        """How often the batches have gone past the end of the data."""
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next `batch_size` examples.

        Where an epoch ends inside a batch, its rest is joined with the start of the next one, which is shuffled anew
        if `shuffle` is true. So every batch is full and no example is left out.

        Args:
          batch_size: How many examples; more than an epoch has is allowed.
          fake_data: Returns ones, as the data set of `fake_data=True` always does.
          shuffle: Draws a new order at the start of an epoch. The order of a running epoch stays as it is.

        Returns:
          (images, labels), copies that the caller may write to.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if fake_data or self._fake:
            return self._fake_batch(batch_size)
        if self._number == 0:
            raise ValueError("next_batch on an empty data set (was it made by validation_size=0?)")
        if shuffle and self._epochs_completed == 0 and self._position == 0:
            self._shuffle()
        stop = self._position + batch_size
        if stop <= self._number:
            rows = self._rows(self._position, stop)
            self._position = stop
        else:
            rows = self._rows_over_the_end(batch_size, shuffle)
        return self._images.take(rows, axis=0), self._labels.take(rows, axis=0)

    def _rows_over_the_end(self, batch_size: int, shuffle: bool) -> np.ndarray:
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
        # The tutorial permuted the permuted images: composed like that, a seed gives the batches it gave in 2018.
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
        # tf.set_random_seed reached the tutorial's shuffling as well.
        seed = sys.modules["tensorflow"].compat.v1.get_seed(None)[0]
    # numpy.random itself, so that a script's numpy.random.seed(...) decides the batches as it used to.
    return np.random if seed is None else np.random.RandomState(seed % 2**32)
