"""LeNet's pipeline: the middle, scaled; no chance in it."""

from __future__ import annotations

import numpy as np
import pytest
from augmenting import augment, encode, noise


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
@pytest.mark.parametrize("channels", [1, 3])
def test_both_forms(mode, channels):
    image = noise(33, 20, channels)
    padded = np.pad(image[2:30], [(0, 0), (4, 4), (0, 0)])
    np.testing.assert_array_equal(augment("lenet", mode, image), (padded - np.float32(128)) / np.float32(128))
    np.testing.assert_array_equal(augment("lenet", mode, image), augment("lenet", mode, image.astype(np.float32)))


def test_encoded_image():
    image = noise(28, 28)
    encoded = augment("lenet", "TRAIN", encode(image, "PNG"), encoded=True)
    np.testing.assert_array_equal(encoded, augment("lenet", "TRAIN", image))
