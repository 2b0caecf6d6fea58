"""tf.contrib.util."""

from __future__ import annotations

from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1


def test_util() -> None:
    proto = contrib.util.make_tensor_proto([1.0, 2.0])
    assert contrib.util.make_ndarray(proto).tolist() == [1.0, 2.0]
