"""Datasets of records for the tests of TFRecord."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from record_writing import (
    encode,
    example,
    noise,
    slim_example,
    write,
)

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset, BaseTFRecordMetadata
from moxing.tf1.contrib import slim

NUMBER = tf.FixedLenFeature([], tf.int64)


def numbers(directory, pattern="*.tfrecord", **arguments):
    """The manual's function on records with the key `id`."""
    handlers = {"id": slim.tfexample_decoder.Tensor("id")}
    return mox.get_tfrecord(str(directory), pattern, {"id": NUMBER}, handlers, **arguments)


def strings(directory, **arguments):
    """The first example of the manual."""
    keys_to_features = {
        "image": tf.FixedLenFeature(shape=(), dtype=tf.string, default_value=None),
        "label": tf.FixedLenFeature(shape=(), dtype=tf.string, default_value=None),
    }
    items_to_handlers = {
        "image": slim.tfexample_decoder.Tensor("image"),
        "label": slim.tfexample_decoder.Tensor("label"),
    }
    return mox.get_tfrecord(
        dataset_dir=str(directory),
        file_pattern="*.tfrecord",
        keys_to_features=keys_to_features,
        items_to_handlers=items_to_handlers,
        **arguments,
    )


def digits(directory, **arguments):
    """The second example of the manual; its default for the label is a tensor."""
    keys_to_features = {
        "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/class/label": tf.FixedLenFeature([1], tf.int64, default_value=tf.zeros([1], dtype=tf.int64)),
    }
    items_to_handlers = {
        "image": slim.tfexample_decoder.Image(shape=[28, 28, 1], channels=1),
        "label": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
    }
    return mox.get_tfrecord(
        dataset_dir=str(directory),
        file_pattern="*.tfrecord",
        keys_to_features=keys_to_features,
        items_to_handlers=items_to_handlers,
        **arguments,
    )


STRINGS = [(b"image \xff\0 %d \0" % i, b"label %d" % (i % 3)) for i in range(10)]


IMAGES = [noise(28, 28, 1, seed) for seed in range(6)]


def write_strings(directory):
    records = [example({"image": image, "label": label}) for image, label in STRINGS]
    write(directory / "a.tfrecord", records[:7])
    write(directory / "b.tfrecord", records[7:])
    return directory


def write_digits(directory):
    records = [slim_example(image, label) for label, image in enumerate(IMAGES)]
    # As in a dataset without labels: the default stands in.
    records[3] = example({"image/encoded": encode(IMAGES[3]), "image/format": b"png"})
    write(directory / "digits.tfrecord", records)
    return directory


def train(input_fn, model_fn, **arguments):
    sgd = lambda: tf.train.GradientDescentOptimizer(0.1)  # noqa: E731
    return mox.run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=sgd, run_mode="TRAIN", **arguments)


def metadata_of(directory, pattern="*.tfrecord"):
    return BaseTFRecordMetadata(str(directory), pattern)


class Doubled(BaseTFRecordDataset):
    """The later way."""

    def _build_features(self, number):
        self._add_feature("number", number)
        self._add_feature("doubled", 2 * number)


LATER = {"feature_keys": ["id"], "feature_values": [NUMBER]}
