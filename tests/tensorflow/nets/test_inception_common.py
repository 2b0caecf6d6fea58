"""What the Inception networks share: tables of modules, names of convolutions, pooling windows."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.inception_common import Conv, Pool, branches, build, scaled_depth, window
from moxing.tensorflow.nets.parts.layers import Layers


def names():
    return [variable.op.name for variable in tf.trainable_variables() if variable.op.name.endswith("weights")]


def test_convolutions_are_named_by_their_position_and_kernel():
    with tf.Graph().as_default():
        net = Layers(training=False)
        module = [[Conv(4)], [Conv(2), Conv(6, 3)], [Conv(2), Conv(3, (1, 7)), Conv(5, 3, stride=1, scope="own")]]
        x = branches(net, tf.zeros([1, 8, 8, 3]), module)
        assert x.shape == [1, 8, 8, 4 + 6 + 5]
        assert names() == [
            "Branch_0/Conv2d_0a_1x1/weights",
            "Branch_1/Conv2d_0a_1x1/weights",
            "Branch_1/Conv2d_0b_3x3/weights",
            "Branch_2/Conv2d_0a_1x1/weights",
            "Branch_2/Conv2d_0b_1x7/weights",
            "Branch_2/own/weights",
        ]


def test_a_table_builds_layers_and_end_points_in_its_order():
    with tf.Graph().as_default():
        net = Layers(training=False)
        table = {"first": Conv(4, 3, stride=2), "pool": Pool("max", stride=2), "mixed": [[Conv(4)], [Pool("avg")]]}
        x = build(net, tf.zeros([1, 16, 16, 3]), table, scaled_depth(0.5, 2))
        assert list(net.end_points) == ["first", "pool", "mixed"]
        assert x.shape == [1, 4, 4, 2 + 2] and x is net.end_points["mixed"]


@pytest.mark.parametrize(("multiplier", "least", "expected"), [(1.0, 8, 32), (0.5, 8, 16), (0.1, 8, 8)])
def test_scaled_depths(multiplier, least, expected):
    assert scaled_depth(multiplier, least)(32) == expected


@pytest.mark.parametrize(("size", "expected"), [((8, 8), (5, 5)), ((3, 8), (3, 5)), ((None, 2), (5, 2))])
def test_a_window_is_no_larger_than_the_features(size, expected):
    with tf.Graph().as_default():
        assert window(Layers(training=False), tf.placeholder(tf.float32, [1, *size, 4]), 5) == expected
