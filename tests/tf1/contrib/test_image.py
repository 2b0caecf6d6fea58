"""Transforms of tf.contrib.image."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.session_runs import run
from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1


def test_rotate_translate_and_transform() -> None:
    picture = np.arange(9, dtype=np.float32).reshape(3, 3)
    with tf.Graph().as_default():
        quarter = contrib.image.rotate(picture, np.pi / 2)
        batch = contrib.image.rotate(np.stack([picture, picture])[..., None], [0.0, np.pi], "BILINEAR")
        moved = contrib.image.translate(picture[..., None], [1, 0])
        assert moved.shape.as_list() == [3, 3, 1]
        quarter, batch, moved = run(quarter, batch, moved)
    np.testing.assert_array_equal(quarter, np.rot90(picture))
    np.testing.assert_allclose(batch[..., 0], [picture, picture[::-1, ::-1]], atol=1e-4)
    np.testing.assert_array_equal(moved[..., 0], [[0, 0, 1], [0, 3, 4], [0, 6, 7]])
    with pytest.raises(ValueError, match="interpolation must be NEAREST or BILINEAR, got 'cubic'"):
        contrib.image.rotate(picture, 0.0, "cubic")
    with pytest.raises(ValueError, match="2, 3 or 4 dimensions"):
        contrib.image.rotate([1.0], 0.0)
