"""The signature of the first versions of `ImageClassificationTFRecordDataset`."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from image_record_datasets import IMAGES, metadata_of, write_images
from record_writing import column, rows, run_seeing

import moxing.tensorflow as mox
from moxing.tf1.contrib import slim

KEYS = {
    "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
    "image/format": tf.FixedLenFeature((), tf.string, default_value="png"),
    "image/class/label": tf.FixedLenFeature([], tf.int64, default_value=0),
}


def handlers():
    return {
        "picture": slim.tfexample_decoder.Image(),
        "number": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
    }


class TestFirstForm:
    def test_by_position(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default():
            dataset = mox.ImageClassificationTFRecordDataset(
                metadata_of(tmp_path), KEYS, handlers(), shuffle=False, num_readers=2, num_epochs=2
            )
            got = rows(dataset, ["picture", "number"])
        assert [int(number) for _, number in got] == [0, 1, 2] * 4
        assert all((image == IMAGES[i % 6]).all() for i, (image, _) in enumerate(got))

    def test_by_name(self, tmp_path):
        write_images(tmp_path)
        with tf.Graph().as_default():
            dataset = mox.ImageClassificationTFRecordDataset(
                metadata=metadata_of(tmp_path),
                keys_to_features=KEYS,
                items_to_handlers=handlers(),
                shuffle=True,
                num_epochs=1,
            )
            assert sorted(column(dataset, "number")) == [0, 0, 1, 1, 2, 2]

    def test_in_a_run(self, tmp_path):
        write_images(tmp_path)

        def input_fn(mode, **kwargs):
            dataset = mox.ImageClassificationTFRecordDataset(
                metadata_of(tmp_path), KEYS, items_to_handlers=handlers(), shuffle=False, num_readers=1, num_epochs=1
            )
            image, label = dataset.get(["picture", "number"])
            image = tf.image.resize_image_with_crop_or_pad(image, 8, 8)
            return label, image

        assert run_seeing(input_fn, batch_size=3)[1] == [[0, 1, 2]] * 2

    def test_what_it_does_not_use_is_refused(self, tmp_path):
        write_images(tmp_path)
        metadata = metadata_of(tmp_path)
        make = mox.ImageClassificationTFRecordDataset
        with tf.Graph().as_default():
            with pytest.raises(ValueError, match="batch_size, image_size: not used with keys_to_features"):
                make(metadata, KEYS, handlers(), batch_size=4, image_size=8)
            with pytest.raises(ValueError, match="expected both or neither"):
                make(metadata, KEYS)
            with pytest.raises(TypeError, match="by name, got 4 arguments by position"):
                make(metadata, KEYS, handlers(), True)
            with pytest.raises(TypeError, match="keys_to_features by name"):
                make(metadata, KEYS, keys_to_features=KEYS)
            with pytest.raises(ValueError, match="num_readers=0"):
                make(metadata, KEYS, handlers(), num_readers=0)
            with pytest.raises(ValueError, match="num_readers=4: only valid with keys_to_features"):
                make(metadata, num_readers=4)
