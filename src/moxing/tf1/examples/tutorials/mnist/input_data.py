"""`read_data_sets` of the TensorFlow 1 tutorial: reads the four IDX files of MNIST. It downloads nothing."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from moxing.tf1.examples.tutorials.mnist import idx
from moxing.tf1.examples.tutorials.mnist.dataset import DataSet

__all__ = ["DataSet", "Datasets", "dense_to_one_hot", "read_data_sets"]

_CLASSES = 10


class Datasets(NamedTuple):
    """The three splits of MNIST."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str | os.PathLike[str],
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """Reads MNIST from a local or remote directory with the four IDX files, compressed or not.

    Args:
      train_dir: the directory.
      fake_data: whether to read nothing and return batches of ones.
      one_hot: whether labels are one-hot vectors instead of class numbers.
      dtype: float32 for pixels in [0, 1], uint8 for [0, 255].
      reshape: whether to flatten images to 784 pixels instead of [28, 28, 1].
      validation_size: number of the first training images that become the validation set.
      seed: seed for shuffling in `next_batch`.
      source_url: ignored; TensorFlow 1 downloaded missing files from it.

    Returns:
      The splits train, validation and test, each a `DataSet`.

    Raises:
      FileNotFoundError: a file is missing.
      ValueError: a file is damaged, or validation_size is out of range.

    Example:
      >>> mnist = read_data_sets('anywhere', fake_data=True, one_hot=True)
      >>> images, labels = mnist.train.next_batch(2)
      >>> len(images[0]), labels[0]
      (784, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    """
    if fake_data:
        return Datasets(*(_fake(one_hot, dtype, seed) for _ in Datasets._fields))

    directory = os.fspath(train_dir)
    paths = [idx.find(directory, name) for name in idx.FILE_NAMES]
    train_images, train_labels = _read_pair(paths[0], paths[1], one_hot)
    test_images, test_labels = _read_pair(paths[2], paths[3], one_hot)
    if not 0 <= validation_size <= len(train_images):
        raise ValueError(f"validation_size must be between 0 and {len(train_images)}, got {validation_size}")

    cut = validation_size
    parts = (
        (train_images[cut:], train_labels[cut:]),
        (train_images[:cut], train_labels[:cut]),
        (test_images, test_labels),
    )
    return Datasets(*(DataSet(x, y, dtype=dtype, reshape=reshape, seed=seed, one_hot=one_hot) for x, y in parts))


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Returns class numbers as one-hot vectors.

    Example:
      >>> dense_to_one_hot(np.array([1, 0]), 3)
      array([[0., 1., 0.],
             [1., 0., 0.]])
    """
    rows = np.zeros((len(labels_dense), num_classes))
    rows[np.arange(len(labels_dense)), labels_dense] = 1.0
    return rows


def _read_pair(images_path: str, labels_path: str, one_hot: bool) -> tuple[np.ndarray, np.ndarray]:
    images = idx.read_images(images_path)
    labels = idx.read_labels(labels_path)
    if len(images) != len(labels):
        raise ValueError(
            f"MNIST file {labels_path} has {len(labels)} labels, but {images_path} has {len(images)} images. "
            "The two files do not belong together."
        )
    if len(labels) and labels.max() >= _CLASSES:
        raise ValueError(f"MNIST file {labels_path} is damaged: label {labels.max()}, expected 0 to 9.")
    return images, dense_to_one_hot(labels, _CLASSES) if one_hot else labels


def _fake(one_hot: bool, dtype: Any, seed: int | None) -> DataSet:
    nothing: np.ndarray = np.zeros((0,), np.uint8)
    return DataSet(nothing, nothing, fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed)
