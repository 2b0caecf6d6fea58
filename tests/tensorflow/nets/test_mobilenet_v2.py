"""MobileNet V2 beyond its goldens: sizes, options, training, NCHW."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import (
    any_size,
    built_with_shapes,
    check_one_row_of_logits,
    differing_shapes,
    shapes_of,
    strided_and_dense,
)

from moxing.tensorflow.nets.mobilenet_v2 import NETWORKS, mobilenet_v2, rounded
from moxing.tensorflow.nets.parts.layers import Layers


def build(name, shape, num_classes=10, **options):
    return built_with_shapes(NETWORKS[name].architecture, shape, num_classes, **options)


# TF-Slim's table of published MobileNets: millions of parameters. They are those of 1,001 classes without the ones of
# batch normalisation.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "millions"), [("mobilenet_v2", 3.47), ("mobilenet_v2_140", 6.06), ("mobilenet_v2_035", 1.66)]
)
def test_as_many_parameters_as_published(name, millions):
    with tf.Graph().as_default():
        build(name, [1, 32, 32, 3], 1001)
        counted = [v.shape.num_elements() for v in tf.trainable_variables() if "BatchNorm" not in v.op.name]
        assert round(sum(counted) / 1e6, 2) == millions


@pytest.mark.slow
def test_the_pattern_is_for_what_depends_on_the_classes_training_or_not():
    network, small = NETWORKS["mobilenet_v2_035"], partial(build, "mobilenet_v2_035", [2, 32, 32, 3])
    ten, seven = shapes_of(small, 10, training=False), shapes_of(small, 7, training=True)
    changed = differing_shapes(ten, seven, network.logits_pattern)
    assert changed == {"MobilenetV2/Logits/Conv2d_1c_1x1/weights", "MobilenetV2/Logits/Conv2d_1c_1x1/biases"}
    assert all(name.startswith(network.scope + "/") for name in ten)


@pytest.mark.slow
def test_training_updates_every_average_and_decays_all_but_depthwise_weights():
    with tf.Graph().as_default():
        build("mobilenet_v2_035", [2, 32, 32, 3], training=True)
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2 * 52
        decayed = [loss.op.name for loss in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)]
        # First, last, logits; 17 projections; 16 expansions.
        assert len(decayed) == 3 + 17 + 16 and not any("depthwise" in name for name in decayed)


@pytest.mark.parametrize(
    ("options", "depth"),
    [
        ({"depth_multiplier": 0.5}, 640),
        ({"depth_multiplier": 0.5, "finegrain_classification_mode": True}, 1280),
        ({"depth_multiplier": 1.4, "finegrain_classification_mode": True}, 1792),
    ],
)
def test_features_and_the_depth_of_the_last_convolution(options, depth):
    with tf.Graph().as_default():
        net, features, variables = build("mobilenet_v2", [2, 64, 96, 3], None, **options)
        assert features.shape == [2, 1, 1, depth] and features is net.end_points["global_pool"]
        assert net.end_points["layer_19"].shape == [2, 2, 3, depth]
        assert "Logits" not in net.end_points and not any("Logits" in name for name in variables)


@pytest.mark.slow
@any_size
def test_any_size_gives_one_row_of_logits(side, training):
    check_one_row_of_logits(partial(build, "mobilenet_v2_035"), side, training)


@pytest.mark.slow
def test_nchw_has_the_same_variables():
    expected = shapes_of(build, "mobilenet_v2_035", [2, 64, 96, 3], training=True)
    with tf.Graph().as_default():
        net, logits, variables = build(
            "mobilenet_v2_035", [2, 3, 64, 96], data_format="NCHW", training=True, spatial_squeeze=False
        )
        assert variables == expected and logits.shape == [2, 10, 1, 1]
        assert net.end_points["layer_18/output"].shape == [2, 112, 2, 3]


def test_a_block_adds_its_input_where_the_shape_stays():
    with tf.Graph().as_default():
        net, _, _ = build("mobilenet_v2", [1, 64, 64, 3])
        adding = {number for number in range(2, 19) if net.end_points[f"layer_{number}"].op.type == "AddV2"}
        # The second and later blocks of every group, and nothing else.
        assert adding == {4, 6, 7, 9, 10, 11, 13, 14, 16, 17}
        # No activation at the shallow ends: a block that adds nothing ends with batch normalisation.
        assert net.end_points["layer_3"].op.type.startswith("FusedBatchNorm")
        assert net.end_points["layer_3/depthwise_output"].op.type == "Relu6"


@pytest.mark.slow
def test_output_stride_gives_the_same_features_more_densely():
    def features(images, output_stride):
        net = Layers(training=False)
        mobilenet_v2(net, images, None, depth_multiplier=0.1, output_stride=output_stride)
        return net.end_points["layer_19"]

    strided, dense = strided_and_dense(features, output_stride=8)
    np.testing.assert_allclose(dense, strided, atol=1e-4 * np.abs(strided).max())


def test_rounded():
    assert [rounded(depth, 8, 8) for depth in (1, 12, 19.9, 20, 27.9, 84)] == [8, 16, 24, 24, 32, 88]
    assert rounded(1, 8, 16) == 16
    assert [rounded(depth, 1, 1) for depth in (0.2, 5.4, 5.6)] == [1, 5, 6]


def test_divisible_by_and_min_depth():
    with tf.Graph().as_default():
        _, _, variables = build("mobilenet_v2", [1, 32, 32, 3], depth_multiplier=0.1, divisible_by=1, min_depth=2)
        depths = [
            variables[f"MobilenetV2/{scope}/weights"][-1] for scope in ("Conv", "expanded_conv/project", "Conv_1")
        ]
        assert depths == [3, 2, 128]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth_multiplier": 0}, "depth_multiplier=0: expected a number greater than 0."),
        ({"min_depth": 0}, "min_depth=0: expected at least 1."),
        ({"divisible_by": 0}, "divisible_by=0: expected at least 1."),
        ({"output_stride": 12}, "output_stride=12: expected None or one of [2, 4, 8, 16, 32]."),
        ({"dropout_keep_prob": 80}, "dropout_keep_prob=80: expected a number above 0 and at most 1"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=re.escape(message)):
        build("mobilenet_v2_035", [1, 32, 32, 3], **options)
