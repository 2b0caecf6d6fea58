"""The affine map of cells."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.session_runs import run
from moxing.tf1.contrib._cells.linear import Linear, linear

v1 = tf.compat.v1


def test_it_is_an_affine_map_of_the_concatenation() -> None:
    a, b = np.array([[1.0, 2.0]], np.float32), np.array([[3.0]], np.float32)
    with tf.Graph().as_default():
        both = linear([a, b], 4, True, bias_initializer=v1.constant_initializer(2.0))
        v1.get_variable_scope().reuse_variables()
        plain = Linear([tf.constant(a), tf.constant(b)], 4, False)
        both, plain, kernel = run(both, plain([a, b]), v1.get_variable("kernel"))
        with pytest.raises(ValueError, match=r"static n, got .* of shape \(1, (None|\?)\)"):
            linear(v1.placeholder(tf.float32, [1, None]), 4, True)
    np.testing.assert_allclose(plain, [[1, 2, 3]] @ kernel, rtol=1e-6)
    np.testing.assert_allclose(both, plain + 2, rtol=1e-6)
