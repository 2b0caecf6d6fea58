"""Augmentations: which images they take, decoded or encoded, of known or unknown size."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from augmenting import augment, encode, noise

from moxing.tensorflow.preprocessing import get_data_augmentation_fn
from moxing.tensorflow.preprocessing.pictures import EncodedPicture


@pytest.mark.parametrize("name", ["vgg_16", "inception_v3", "pvanet"])
@pytest.mark.parametrize(("channels", "advice"), [(1, "grayscale_to_rgb"), (4, r"image\[:, :, :3\]"), (2, "RGB")])
def test_networks_for_colour_images(name, channels, advice):
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=rf"has {channels} channel\(s\), expected 3: .*{advice}"),
    ):
        get_data_augmentation_fn(name, "EVAL")(tf.zeros([300, 300, channels]))


def test_bad_images():
    fn = get_data_augmentation_fn("lenet", "EVAL")
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match=r"expected \[height, width, channels\]"):
            fn(tf.zeros([2, 28, 28, 1]))
        with pytest.raises(ValueError, match=r"expected numbers from 0 to 255\. Decode the bytes of a file first"):
            fn(tf.constant([[[b"bytes"]]]))


@pytest.mark.parametrize("name", ["vgg_16", "inception_v3", "cifarnet", "lenet", "pvanet"])
@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
def test_sizes_unknown_when_the_graph_is_built(name, mode):
    image = noise(70, 90)
    options = {"vgg_16": {"resize_side_min": 30, "resize_side_max": 40}}.get(name, {})
    with tf.Graph().as_default(), tf.Session() as session:
        fn = get_data_augmentation_fn(name, mode, 24, 20, **options)
        open_image = tf.placeholder(tf.uint8, [None, None, 3])
        result = fn(open_image, seed=(1, 2))
        assert result.shape == (24, 20, 3)
        values = session.run(result, {open_image: image})
        encoded = tf.data.Dataset.from_tensors(encode(image, "PNG"))
        encoded = encoded.map(lambda data: fn.apply(EncodedPicture(data), seed=(1, 2)))
        mapped = session.run(tf.data.make_one_shot_iterator(encoded).get_next())
    np.testing.assert_allclose(values, mapped, atol=1e-4)
    np.testing.assert_allclose(values, augment(name, mode, image, 24, 20, seed=(1, 2), **options), atol=1e-4)
