"""The version of TensorFlow as numbers."""

import pytest
import tensorflow as tf

from moxing.tensorflow.utils import tf_util


@pytest.mark.parametrize(
    ("text", "numbers"), [("2.21.0", (2, 21, 0)), ("2.21.1-rc2", (2, 21, 1)), ("1.15.0rc1", (1, 15, 1))]
)
def test_versions(monkeypatch, text, numbers):
    monkeypatch.setattr(tf, "__version__", text)
    assert tf_util.version_info()[:2] == numbers[:2]
    assert all(isinstance(number, int) for number in tf_util.version_info())
