"""ResNet: strides and what replaces them, sizes, axes, training. Most tests build short ones: a unit or two a block."""

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
    shapes,
    strided_and_dense,
)

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.resnet_v1 import NETWORKS, Unit, blocks_of, resnet_v1

short = partial(resnet_v1, name="short", units=(2, 1, 1, 1))


def build(shape, num_classes=10, architecture=short, **options):
    return built(architecture, shape, num_classes, **options)


def test_blocks_end_with_their_stride():
    strides = [[unit.stride for unit in block] for block in blocks_of((3, 4, 6, 3))]
    assert strides == [[1, 1, 2], [1, 1, 1, 2], [1, 1, 1, 1, 1, 2], [1, 1, 1]]


def test_blocks_begin_with_their_stride():
    blocks = blocks_of((2, 2, 2), first_unit_strides=True, first_depth=16)
    assert blocks == [[Unit(16), Unit(16)], [Unit(32, 2), Unit(32)], [Unit(64, 2), Unit(64)]]


def test_output_stride_turns_strides_into_distances():
    assert blocks_of((2, 2, 2, 2), output_stride=8) == [
        [Unit(256), Unit(256, 2)],
        [Unit(512), Unit(512, 1)],
        [Unit(1024, 1, 2), Unit(1024, 1, 2)],
        [Unit(2048, 1, 4), Unit(2048, 1, 4)],
    ]
    assert blocks_of((1, 1, 2, 1), output_stride=8, first_unit_strides=True)[2] == [Unit(1024, 1, 1), Unit(1024, 1, 2)]
    assert blocks_of((3, 4, 6, 3), output_stride=32) == blocks_of((3, 4, 6, 3))


@pytest.mark.parametrize("output_stride", [0, 2, 6, 64, "8"])
def test_wrong_output_stride(output_stride):
    with pytest.raises(ValueError, match=f"output_stride={output_stride!r}.*expected 4, 8, 16, 32 or None"):
        blocks_of((1, 1, 1, 1), output_stride)


@pytest.mark.parametrize("output_stride", [4, 16])
def test_dense_features_contain_the_strided_ones(output_stride):
    features = partial(short, Layers(training=False), num_classes=None, global_pool=False)
    strided, dense = strided_and_dense(features, output_stride)
    assert strided.shape == (1, 3, 3, 2048)
    np.testing.assert_allclose(dense, strided, rtol=1e-3, atol=1e-3 * np.abs(strided).max())


# 25,557,032 is what torchvision states for ResNet-50 with 1,000 classes (`num_params` of ResNet50_Weights).
def test_parameters():
    with tf.Graph().as_default():
        build((1, 64, 64, 3), 1000, architecture=NETWORKS["resnet_v1_50"].architecture)
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == 25_557_032


def test_features():
    with tf.Graph().as_default():
        net, features = build((2, 64, 64, 3), None)
        assert features is net.end_points["global_pool"]
        assert features.shape.as_list() == [2, 1, 1, 2048]
        assert not any("logits" in name for name in [*shapes(), *net.end_points])


def test_logits_of_every_place():
    with tf.Graph().as_default():
        net, logits = build((2, 96, 64, 3), global_pool=False)
        assert logits.shape.as_list() == net.end_points["predictions"].shape.as_list() == [2, 3, 2, 10]
    with tf.Graph().as_default():
        assert build((2, 96, 64, 3), spatial_squeeze=False)[1].shape.as_list() == [2, 1, 1, 10]


@pytest.mark.parametrize("size", [NETWORKS["resnet_v1_50"].smallest, 37, 64])
def test_sizes_unknown_before_the_run(size):
    with tf.Graph().as_default():
        net, logits = build((None, None, None, 3))
        assert logits.shape.as_list() == [None, 10]
        last, predictions = run([net.end_points["short/block4"], net.end_points["predictions"]], (2, size, size + 1, 3))
    assert last.shape == (2, -(-size // 32), -(-(size + 1) // 32), 2048)
    np.testing.assert_allclose(predictions.sum(axis=1), 1, rtol=1e-5)


def test_channels_first():
    net = channels_first(build, (2, 64, 96, 3))
    assert net.end_points["short/block4"].shape.as_list() == [2, 2048, 2, 3]


def test_logits_pattern_hits_what_depends_on_the_classes():
    differing = dependent_on_classes(build, NETWORKS["resnet_v1_50"].logits_pattern, (2, 32, 32, 3))
    assert differing == {"short/logits/weights", "short/logits/biases"}


def test_every_variable_learns():
    check_every_variable_learns(build, (4, 32, 32, 3))
