"""The CIFAR networks' pipeline: evaluation against NumPy, training by the distribution of what it decides."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from augmenting import augment, chi_square, draw, encode, limit, noise

from moxing.tensorflow.preprocessing import get_data_augmentation_fn


def standardized(image: np.ndarray) -> np.ndarray:
    return (image - image.mean()) / max(image.std(), 1 / np.sqrt(image.size))


@pytest.mark.parametrize("channels", [1, 3])
def test_evaluation(channels):
    image = noise(37, 20, channels).astype(np.float64)
    expected = standardized(np.pad(image[2:34], [(0, 0), (6, 6), (0, 0)]))
    np.testing.assert_allclose(augment("cifarnet", "EVAL", image), expected, atol=1e-5)
    np.testing.assert_allclose(augment("cifarnet", "EVAL", image.astype(np.uint8)), expected, atol=1e-5)


def test_evaluation_of_one_colour():
    assert np.abs(augment("resnet_v1_20", "EVAL", np.full((32, 32, 3), 9, np.uint8))).max() == 0


def test_training_place_and_mirror():
    # Two marks in one line say where the crop began and which way round it is; with padding 4 they are always inside.
    image = np.zeros((12, 12, 1), np.uint8)
    image[5, 4], image[5, 7] = 250, 120
    crops = draw("cifarnet", image, 12, 12)[..., 0]
    flat = crops.reshape(len(crops), -1)
    bright, dim = (np.unravel_index(np.argsort(flat, axis=1)[:, rank], (12, 12)) for rank in (-1, -2))
    np.testing.assert_array_equal(bright[0], dim[0])
    mirrored = dim[1] < bright[1]
    np.testing.assert_array_equal(np.abs(dim[1] - bright[1]), 3)
    top = 5 + 4 - bright[0]
    left = 4 + 4 - np.where(mirrored, 11 - bright[1], bright[1])
    assert chi_square(top, 0, 8) < limit(9)
    assert chi_square(left, 0, 8) < limit(9)
    assert abs(mirrored.mean() - 0.5) < 0.03
    assert abs(np.corrcoef(top, left)[0, 1]) < 0.07


def test_training_crops_larger_images_without_padding():
    row, column = np.mgrid[0:9, 0:12]
    crops = draw("cifarnet", (row * 12 + column).astype(np.float32)[..., None], 6, 6, padding=0)[..., 0]
    # Values rise by 1 along a line and by 12 from line to line: the ratio survives standardization.
    across = crops[:, 0, 1] - crops[:, 0, 0]
    np.testing.assert_allclose((crops[:, 1, 0] - crops[:, 0, 0]) / np.abs(across), 12, rtol=1e-3)


def test_training_contrast():
    # Standardization hides a common factor, not how far the channels' means are apart against the spread in them.
    image = np.zeros((8, 8, 2), np.float32)
    image[..., 0] = np.where(np.mgrid[0:8, 0:8][0] < 4, 90, 110)
    image[..., 1] = 150
    results = draw("cifarnet", image, 8, 8, padding=0)
    spread = results[:, 6, 0, 0] - results[:, 1, 0, 0]
    contrast = spread / 20 * 50 / (results[..., 1].mean(axis=(1, 2)) - results[..., 0].mean(axis=(1, 2)))
    assert contrast.min() > 0.199 and contrast.max() < 1.801
    cells = np.minimum((contrast - 0.2) / 0.16, 9).astype(int)
    assert chi_square(cells, 0, 9) < limit(10)


def test_training_depends_on_the_seed_alone():
    image = noise(32, 32)
    parallel = draw("cifarnet", image, count=40, parallel=8)
    np.testing.assert_array_equal(parallel, draw("cifarnet", image, count=40, parallel=None))
    np.testing.assert_array_equal(parallel[3], augment("cifarnet", "TRAIN", image, seed=(3, 7)))
    np.testing.assert_array_equal(parallel[3], augment("cifarnet", "TRAIN", image.astype(np.float32), seed=(3, 7)))
    assert len({each.tobytes() for each in parallel}) == 40


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
def test_encoded_images(mode):
    image = noise(40, 28)
    encoded = augment("cifarnet", mode, encode(image, "PNG"), seed=(1, 2), encoded=True)
    np.testing.assert_array_equal(encoded, augment("cifarnet", mode, image, seed=(1, 2)))


def test_bad_input():
    with pytest.raises(ValueError, match=r"padding=-1: expected a number from 0 to less than the output's 32 x 32"):
        get_data_augmentation_fn("cifarnet", "TRAIN", padding=-1)
    with pytest.raises(ValueError, match="padding=32"):
        get_data_augmentation_fn("cifarnet", "TRAIN", padding=32)
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.uint8, [None, None, 3])
        result = get_data_augmentation_fn("cifarnet", "TRAIN")(image, seed=(1, 2))
        with pytest.raises(tf.errors.InvalidArgumentError, match="height with padding=4 .* less than output_height=32"):
            session.run(result, {image: noise(20, 40)})
