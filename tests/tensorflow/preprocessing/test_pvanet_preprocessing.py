"""PVANET's pipeline: a square of 256, whatever the image's shape."""

from __future__ import annotations

import numpy as np
import pytest
from augmenting import MEANS, augment, bilinear, chi_square, draw, encode, limit, noise, positions

from moxing.tensorflow.preprocessing import get_data_augmentation_fn


@pytest.mark.parametrize("source", [(375, 500), (90, 300)])
def test_evaluation(source):
    image = noise(*source)
    expected = bilinear(image, 256, 256)[32:224, 16:240] - MEANS
    np.testing.assert_allclose(augment("pvanet", "EVAL", image, 192, 224), expected, atol=0.02)


def test_training():
    pixels = draw("pvanet", positions(32, 64), 24, 20, resize_side=32) + MEANS
    mirrored = pixels[:, 0, 1, 0] < pixels[:, 0, 0, 0]
    left = np.rint(np.where(mirrored, pixels[:, 0, -1, 0], pixels[:, 0, 0, 0]) / 2).astype(int)
    np.testing.assert_allclose(np.abs(pixels[:, 5, 5, 0] - pixels[:, 5, 4, 0]), 2, atol=1e-3)  # 64 columns became 32
    np.testing.assert_allclose(pixels[:, 5, 5, 1] - pixels[:, 4, 5, 1], 1, atol=1e-3)
    assert chi_square(np.rint(pixels[:, 0, 0, 1]).astype(int), 0, 8) < limit(9)
    assert chi_square(left, 0, 12) < limit(13)
    assert abs(mirrored.mean() - 0.5) < 0.03


def test_encoded_images():
    image = noise(40, 60)
    for mode in ("TRAIN", "EVAL"):
        encoded = augment("pvanet", mode, encode(image, "PNG"), 24, 24, seed=(1, 2), resize_side=32, encoded=True)
        decoded = augment("pvanet", mode, image, 24, 24, seed=(1, 2), resize_side=32)
        np.testing.assert_allclose(encoded, decoded, atol=1e-4)


def test_output_larger_than_the_square():
    with pytest.raises(ValueError, match=r"output_width=300 is more than resize_side=256.*resize_side=300"):
        get_data_augmentation_fn("pvanet", "EVAL", 224, 300)
