"""Resizing a whole picture and cutting a part out of it, and doing both at once, give the same pixels."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from augmenting import bilinear, encode, noise

from moxing.tensorflow.preprocessing.pictures import DecodedPicture, EncodedPicture
from moxing.tensorflow.preprocessing.resizing import crop_or_pad, padded_window, resize_and_crop, resize_bilinear

# Source, size of the resized whole, corner and size of the part: down, up, beyond twice, all four edges, no change.
CASES = [
    ((375, 500), (256, 341), (16, 58), (224, 224)),
    ((375, 500), (256, 341), (0, 0), (224, 224)),
    ((375, 500), (256, 341), (32, 117), (224, 224)),
    ((375, 500), (512, 683), (288, 459), (224, 224)),
    ((60, 45), (300, 225), (76, 1), (224, 224)),
    ((60, 45), (300, 225), (0, 0), (300, 225)),
    ((31, 17), (31, 17), (5, 2), (20, 15)),
    ((1, 1), (9, 9), (1, 2), (7, 7)),
    ((400, 3), (40, 50), (39, 49), (1, 1)),
]


@pytest.mark.parametrize(("source", "whole", "corner", "size"), CASES)
def test_part_equals_part_of_the_whole(source, whole, corner, size):
    image = noise(*source)
    part = np.s_[corner[0] : corner[0] + size[0], corner[1] : corner[1] + size[1]]
    with tf.Graph().as_default(), tf.Session() as session:
        at_once = resize_and_crop(DecodedPicture(tf.constant(image)), whole, corner, size)
        mirrored = resize_and_crop(DecodedPicture(tf.constant(image)), whole, corner, size, tf.constant(True))
        tensorflow = tf.image.resize_bilinear(tf.constant(image[None]), whole)[0][part]
        plain = resize_bilinear(tf.constant(image), *whole)[part]
        assert at_once.shape == plain.shape == (*size, 3)
        values = session.run([at_once, tensorflow, plain, mirrored])
    np.testing.assert_allclose(values[0], values[1], atol=1e-4)
    np.testing.assert_array_equal(values[2], values[1])
    np.testing.assert_array_equal(values[3], values[0][:, ::-1])
    np.testing.assert_allclose(values[0], bilinear(image, *whole)[part], atol=0.02)


class Recorder(DecodedPicture):
    """Notes the windows that are asked for."""

    def __init__(self, image):
        super().__init__(image)
        self.windows = []

    def window(self, top, left, height, width):
        self.windows.append(tf.stack([top, left, height, width]))
        return super().window(top, left, height, width)


def test_only_the_needed_lines_are_read():
    with tf.Graph().as_default(), tf.Session() as session:
        picture = Recorder(tf.constant(noise(100, 200)))
        resize_and_crop(picture, (50, 100), (10, 20), (20, 30))
        crop_or_pad(picture, 11, 300)
        padded_window(picture, -3, 195, 10, 10)
        windows = session.run(picture.windows)
    assert [window.tolist() for window in windows] == [[20, 40, 40, 60], [44, 0, 11, 200], [0, 195, 7, 5]]


@pytest.mark.parametrize("source", [(5, 8), (8, 5), (6, 6), (7, 7), (4, 9), (1, 1)])
@pytest.mark.parametrize("size", [(6, 6), (5, 8), (7, 3)])
def test_crop_or_pad_is_the_one_of_tensorflow(source, size):
    image = noise(*source, channels=1)
    with tf.Graph().as_default(), tf.Session() as session:
        ours = crop_or_pad(DecodedPicture(tf.constant(image)), *size)
        assert ours.shape == (*size, 1)
        theirs = tf.image.resize_image_with_crop_or_pad(tf.constant(image), *size)
        np.testing.assert_array_equal(*session.run([ours, theirs]))


def test_encoded_pictures_give_the_same_pixels():
    image = noise(90, 120)
    with tf.Graph().as_default(), tf.Session() as session:
        encoded = tf.constant(encode(image, "JPEG"))
        pictures = [
            DecodedPicture(tf.image.decode_jpeg(encoded, channels=3, dct_method="INTEGER_ACCURATE")),
            EncodedPicture(encoded),
        ]
        both = [resize_and_crop(picture, (64, 85), (10, 20), (48, 48)) for picture in pictures]
        both += [padded_window(picture, -2, 100, 40, 40) for picture in pictures]
        values = session.run(both)
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[2], values[3])
