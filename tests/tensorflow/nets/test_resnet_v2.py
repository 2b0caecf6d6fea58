"""Pre-activation ResNet: where it normalises, strides, sizes, axes, training. The tests build short ones."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import (
    built,
    channels_first,
    check_every_variable_learns,
    dependent_on_classes,
    run,
    strided_and_dense,
)

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.resnet_v2 import NETWORKS, resnet_v2

short = partial(resnet_v2, name="short", units=(2, 1, 1, 1))


def build(shape, num_classes=10, architecture=short, **options):
    return built(architecture, shape, num_classes, **options)


# Keras states 25,613,800 parameters for ResNet50V2 with 1,000 classes, of which 45,440 are moving averages.
@pytest.mark.slow
def test_parameters():
    with tf.Graph().as_default():
        build((1, 64, 64, 3), 1000, architecture=NETWORKS["resnet_v2_50"].architecture)
        assert sum(variable.shape.num_elements() for variable in tf.global_variables()) == 25_613_800
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == 25_613_800 - 45_440


def test_a_unit_adds_to_its_bare_input():
    with tf.Graph().as_default():
        net, _ = build((1, 33, 33, 3), training=True)
        unit = "short/block1/unit_2/bottleneck_v2"
        before, added, after = run(
            [net.end_points[name] for name in ("short/block1/unit_1/bottleneck_v2", f"{unit}/conv3", unit)],
            (1, 33, 33, 3),
        )
    # The last unit of the block has the stride: its shortcut is every second pixel.
    np.testing.assert_allclose(after, before[:, ::2, ::2] + added, rtol=1e-5, atol=1e-6)
    assert after.min() < 0


@pytest.mark.parametrize("output_stride", [4, 16])
def test_dense_features_contain_the_strided_ones(output_stride):
    features = partial(short, Layers(training=False), num_classes=None, global_pool=False)
    strided, dense = strided_and_dense(features, output_stride)
    assert strided.shape == (1, 3, 3, 2048)
    np.testing.assert_allclose(dense, strided, rtol=1e-3, atol=1e-3 * np.abs(strided).max())


def test_wrong_output_stride():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="output_stride=3: expected 4, 8, 16, 32 or None"):
        build((1, 64, 64, 3), output_stride=3)


def test_features_are_activated():
    with tf.Graph().as_default():
        net, features = build((2, 64, 64, 3), None)
        assert features is net.end_points["global_pool"]
        assert features.shape.as_list() == [2, 1, 1, 2048]
        assert run(features, (2, 64, 64, 3)).min() >= 0


def test_logits_of_every_place():
    with tf.Graph().as_default():
        assert build((2, 96, 64, 3), global_pool=False)[1].shape.as_list() == [2, 3, 2, 10]
    with tf.Graph().as_default():
        assert build((2, 96, 64, 3), spatial_squeeze=False)[1].shape.as_list() == [2, 1, 1, 10]


@pytest.mark.parametrize("size", [NETWORKS["resnet_v2_50"].smallest, 37])
def test_sizes_unknown_before_the_run(size):
    with tf.Graph().as_default():
        net, logits = build((None, None, None, 3))
        assert logits.shape.as_list() == [None, 10]
        last = run(net.end_points["short/block4"], (2, size, size + 1, 3))
    assert last.shape == (2, -(-size // 32), -(-(size + 1) // 32), 2048)


def test_channels_first():
    net = channels_first(build, (2, 64, 96, 3))
    assert net.end_points["short/block4"].shape.as_list() == [2, 2048, 2, 3]


def test_logits_pattern_hits_what_depends_on_the_classes():
    differing = dependent_on_classes(build, NETWORKS["resnet_v2_50"].logits_pattern, (2, 32, 32, 3))
    assert differing == {"short/logits/weights", "short/logits/biases"}


def test_every_variable_learns():
    check_every_variable_learns(build, (4, 64, 64, 3))
