"""Well-known datasets by name, as TF-Slim's conversion scripts write them."""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.datasets.tfrecord.tfrecord_common import RecordReading, decoded_source
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import ImageClassificationTFRecordMetadata
from moxing.tf1.contrib import slim


@dataclass(frozen=True)
class DatasetMeta:
    """The metadata of a well-known dataset.

    Attributes:
      splits_to_sizes: the number of samples in `train` and in `eval`.
      num_classes: the number of classes.
    """

    splits_to_sizes: Mapping[str, int]
    num_classes: int


@dataclass(frozen=True)
class _Entry:
    train: int
    eval: int
    num_classes: int
    patterns: Mapping[str, str]
    eval_name: str  # TF-Slim's name of the split that MoXing calls eval
    image_shape: tuple[int, int, int] | None = None


_CATALOG = {
    "mnist": _Entry(
        60_000, 10_000, 10, {"train": "mnist_train.tfrecord*", "eval": "mnist_test.tfrecord*"}, "test", (28, 28, 1)
    ),
    "cifar10": _Entry(
        50_000, 10_000, 10, {"train": "cifar10_train.tfrecord*", "eval": "cifar10_test.tfrecord*"}, "test", (32, 32, 3)
    ),
    "flowers": _Entry(3_320, 350, 5, {"train": "flowers_train_*", "eval": "flowers_validation_*"}, "validation"),
    "imagenet": _Entry(1_281_167, 50_000, 1001, {"train": "train-*", "eval": "validation-*"}, "validation"),
}


def get_dataset_meta(name: str) -> DatasetMeta:
    """Returns the sizes and the number of classes of a well-known dataset.

    Args:
      name: `'mnist'`, `'cifar10'`, `'flowers'` or `'imagenet'`.

    Example:
      >>> get_dataset_meta('imagenet').num_classes, dict(get_dataset_meta('mnist').splits_to_sizes)
      (1001, {'train': 60000, 'eval': 10000})
    """
    entry = _lookup(name)
    return DatasetMeta(OrderedDict(train=entry.train, eval=entry.eval), entry.num_classes)


def get_dataset(name: str, split_name: str, dataset_dir: str, capacity: int = 256) -> BaseDataset:
    """Returns a well-known dataset, from the TFRecord files of TF-Slim's scripts. Call it inside `input_fn`.

    Args:
      name: `'mnist'`, `'cifar10'`, `'flowers'` or `'imagenet'`.
      split_name: `'train'` or `'eval'`; TF-Slim's names `'test'` and `'validation'` also work.
      dataset_dir: the directory of the files.
      capacity: the number of records to prefetch.

    Returns:
      An object whose `get(['image', 'label'])` returns the tensors of one sample; `train` is shuffled. It never ends.
    """
    entry = _lookup(name)
    check_counts(capacity=capacity)
    split = "eval" if split_name == entry.eval_name else split_name
    if split not in entry.patterns:
        raise ValueError(f"split_name={split_name!r}: {name} has the splits 'train' and 'eval'.")
    return _CatalogDataset(entry, dataset_dir, split, capacity)


class _CatalogDataset(BaseDataset):
    def __init__(self, entry: _Entry, dataset_dir: str, split: str, capacity: int) -> None:
        metadata = ImageClassificationTFRecordMetadata(
            dataset_dir, entry.patterns[split], num_classes=entry.num_classes
        )
        decoder = slim.tfexample_decoder
        keys: dict[str, Any] = {
            "image/encoded": tf.FixedLenFeature([], tf.string),
            "image/format": tf.FixedLenFeature([], tf.string, default_value="jpeg"),
            "image/class/label": tf.FixedLenFeature([], tf.int64),
        }
        shape = entry.image_shape
        image = decoder.Image(shape=shape, channels=shape[2]) if shape else decoder.Image()
        handlers = {"image": image, "label": decoder.Tensor("image/class/label", shape=[])}
        self._source = decoded_source(metadata, keys, handlers, RecordReading(split == "train", capacity=capacity))


def _lookup(name: str) -> _Entry:
    if name not in _CATALOG:
        near = difflib.get_close_matches(str(name), _CATALOG, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"name={name!r}: expected one of {', '.join(_CATALOG)}.{hint}")
    return _CATALOG[name]
