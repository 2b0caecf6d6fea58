"""Helpers of TF-Slim for scripts that write and read datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import Url
from moxing.tensorflow.datasets.raw.labels import read_label_map, write_labels

LABELS_FILENAME = "labels.txt"


def has_labels(dataset_dir: Url, filename: str = LABELS_FILENAME) -> bool:
    """Returns whether a dataset has a labels file.

    Example:
      >>> has_labels('/no/such/folder')
      False
    """
    return file.exists(_labels_path(dataset_dir, filename))


def read_label_file(dataset_dir: Url, filename: str = LABELS_FILENAME) -> dict[int, str]:
    """Returns the class names of a dataset by index. See `labels.read_label_map` for the format of the file.

    Raises:
      MoxFileNotExistsException: there is no such file.
      ValueError: a line has the wrong format; the message names it.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     file.write(folder + '/labels.txt', '0:daisy\\n1:roses\\n')
      ...     read_label_file(folder)
      {0: 'daisy', 1: 'roses'}
    """
    return read_label_map(_labels_path(dataset_dir, filename))


def write_label_file(
    labels_to_class_names: Mapping[int, str], dataset_dir: Url, filename: str = LABELS_FILENAME
) -> None:
    """Writes the labels file of a dataset, one line `index:name` per class.

    Args:
      labels_to_class_names: the names by index.
      dataset_dir: the directory, which must exist.
      filename: the name of the file in it.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     write_label_file({0: 'daisy', 1: 'roses'}, folder)
      ...     file.read(folder + '/labels.txt')
      '0:daisy\\n1:roses\\n'
    """
    if not isinstance(labels_to_class_names, Mapping):
        raise TypeError(f"labels_to_class_names={labels_to_class_names!r}: expected a dict from index to name.")
    write_labels(_labels_path(dataset_dir, filename), labels_to_class_names, separator=":")


def int64_feature(values: Any) -> tf.train.Feature:
    """Returns a `tf.train.Feature` of integers.

    Args:
      values: one integer, or a sequence or array of them, which is flattened.

    Example:
      >>> list(int64_feature([3, 4]).int64_list.value)
      [3, 4]
    """
    numbers = np.asarray(values).reshape(-1)
    if numbers.size and numbers.dtype.kind not in "iub":
        raise TypeError(f"values={values!r}: expected integers.")
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(number) for number in numbers]))


def float_feature(values: Any) -> tf.train.Feature:
    """Returns a `tf.train.Feature` of numbers in single precision.

    Args:
      values: one number, or a sequence or array of them, which is flattened.

    Example:
      >>> list(float_feature(0.5).float_list.value)
      [0.5]
    """
    numbers = np.asarray(values).reshape(-1)
    if numbers.size and numbers.dtype.kind not in "iubf":
        raise TypeError(f"values={values!r}: expected numbers.")
    return tf.train.Feature(float_list=tf.train.FloatList(value=[float(number) for number in numbers]))


def bytes_feature(values: Any) -> tf.train.Feature:
    """Returns a `tf.train.Feature` of bytes.

    Args:
      values: one bytes or str, or a sequence of them; a str is stored as UTF-8.

    Example:
      >>> list(bytes_feature('jpg').bytes_list.value)
      [b'jpg']
    """
    single = isinstance(values, bytes | str) or not isinstance(values, Iterable)
    return tf.train.Feature(
        bytes_list=tf.train.BytesList(value=[_as_bytes(value) for value in ([values] if single else values)])
    )


def image_to_tfexample(image_data: bytes, image_format: bytes | str, height: int, width: int, class_id: int) -> Any:
    """Returns a `tf.train.Example` of one image with its class, with the keys of TF-Slim's readers.

    Args:
      image_data: the encoded image, the content of its file.
      image_format: `jpg` or `png`.
      height: the height in pixels.
      width: the width in pixels.
      class_id: the index of the class.

    Example:
      >>> example = image_to_tfexample(b'...', b'jpg', 20, 30, 7)
      >>> sorted(example.features.feature)
      ['image/class/label', 'image/encoded', 'image/format', 'image/height', 'image/width']
    """
    features = {
        "image/encoded": bytes_feature(image_data),
        "image/format": bytes_feature(image_format),
        "image/class/label": int64_feature(class_id),
        "image/height": int64_feature(height),
        "image/width": int64_feature(width),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def _labels_path(dataset_dir: Url, filename: str) -> str:
    return os.path.join(os.fsdecode(dataset_dir), filename)


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        # A file name may contain bytes that are not UTF-8.
        return value.encode("utf-8", "surrogateescape")
    raise TypeError(f"values holds {value!r}: expected bytes or str.")
