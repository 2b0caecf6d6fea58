"""MobileNet beyond its goldens: sizes, options, training, NCHW."""

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
    channels_first,
    check_one_row_of_logits,
    differing_shapes,
    shapes_of,
    strided_and_dense,
)

from moxing.tensorflow.nets.mobilenet_v1 import NETWORKS, mobilenet_v1
from moxing.tensorflow.nets.parts.layers import Layers


def build(name, shape, num_classes=10, **options):
    return built_with_shapes(NETWORKS[name].architecture, shape, num_classes, **options)


# Table 6 of the paper: millions of parameters with 1,000 classes.
@pytest.mark.parametrize(
    ("name", "millions"),
    [("mobilenet_v1", 4.2), ("mobilenet_v1_075", 2.6), ("mobilenet_v1_050", 1.3), ("mobilenet_v1_025", 0.5)],
)
def test_as_many_parameters_as_in_the_paper(name, millions):
    with tf.Graph().as_default():
        build(name, [1, 32, 32, 3], 1000)
        assert round(sum(v.shape.num_elements() for v in tf.trainable_variables()) / 1e6, 1) == millions


@pytest.mark.slow
def test_the_pattern_is_for_what_depends_on_the_classes_training_or_not():
    network, small = NETWORKS["mobilenet_v1_025"], partial(build, "mobilenet_v1_025", [2, 32, 32, 3])
    ten, seven = shapes_of(small, 10, training=False), shapes_of(small, 7, training=True)
    changed = differing_shapes(ten, seven, network.logits_pattern)
    assert changed == {"MobilenetV1/Logits/Conv2d_1c_1x1/weights", "MobilenetV1/Logits/Conv2d_1c_1x1/biases"}
    assert all(name.startswith(network.scope + "/") for name in ten)


def test_training_updates_every_average_and_decays_all_but_depthwise_weights():
    with tf.Graph().as_default():
        build("mobilenet_v1_025", [2, 32, 32, 3], training=True)
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2 * 27
        decayed = [loss.op.name for loss in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)]
        assert len(decayed) == 15 and not any("depthwise" in name for name in decayed)
        dropped = [
            op for op in tf.get_default_graph().get_operations() if op.type == "RandomUniform" and "dropout" in op.name
        ]
        assert len(dropped) == 1


@pytest.mark.slow
def test_dropout_keeps_the_share_it_is_told():
    with tf.Graph().as_default(), tf.Session() as session:
        net, images = Layers(training=True), tf.random.stateless_normal([2, 32, 32, 3], seed=[1, 2])
        logits = mobilenet_v1(net, images, 5, depth_multiplier=0.25, dropout_keep_prob=1.0)
        session.run(tf.global_variables_initializer())
        pooled = net.end_points["AvgPool_1a"]
        weights, biases = (v for v in tf.trainable_variables() if "Logits" in v.op.name)
        expected = tf.matmul(net.squeeze(pooled), tf.reshape(weights, [-1, 5])) + biases
        got, wanted = session.run([logits, expected])
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-7)


def test_features_without_classes():
    with tf.Graph().as_default():
        net, features, variables = build("mobilenet_v1_050", [2, 64, 96, 3], None)
        assert features.shape == [2, 1, 1, 512] and features is net.end_points["AvgPool_1a"]
        assert "Logits" not in net.end_points and not any("Logits" in name for name in variables)


@any_size
def test_any_size_gives_one_row_of_logits(side, training):
    check_one_row_of_logits(partial(build, "mobilenet_v1_025"), side, training)


@pytest.mark.slow
def test_a_size_known_only_when_running_changes_nothing():
    images = np.random.default_rng(1).uniform(-1, 1, (2, 45, 37, 3)).astype("float32")
    with tf.Graph().as_default(), tf.variable_scope("", reuse=tf.AUTO_REUSE), tf.Session() as session:
        unknown = tf.placeholder(tf.float32, [None, None, None, 3])
        outputs = [mobilenet_v1(Layers(False), x, 5, depth_multiplier=0.25) for x in (unknown, tf.constant(images))]
        session.run(tf.global_variables_initializer())
        first, second = session.run(outputs, {unknown: images})
        assert np.abs(first).max() > 0
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5 * np.abs(first).max())


@pytest.mark.slow
def test_nchw_has_the_same_variables():
    net = channels_first(partial(build, "mobilenet_v1_025"), (2, 64, 96, 3))
    assert net.end_points["Conv2d_13_pointwise"].shape == [2, 256, 2, 3]
    assert net.end_points["AvgPool_1a"].shape == [2, 256, 1, 1]
    with tf.Graph().as_default():
        maps = build("mobilenet_v1_025", [2, 3, 64, 96], data_format="NCHW", spatial_squeeze=False)[1]
        assert maps.shape == [2, 10, 1, 1]


@pytest.mark.slow
def test_windows_instead_of_global_pooling():
    for side, shape in ((224, [1, 10]), (64, [1, 10]), (320, [1, 2, 2, 10]), (None, [1, None, None, 10])):
        with tf.Graph().as_default():
            net, logits, _ = build("mobilenet_v1_025", [1, side, side, 3], global_pool=False)
            assert logits.shape.as_list() == shape == net.end_points["Predictions"].shape.as_list()


def test_depths():
    with tf.Graph().as_default():
        net, _, variables = build("mobilenet_v1", [1, 32, 32, 3], depth_multiplier=0.01, min_depth=3)
        assert variables["MobilenetV1/Conv2d_0/weights"] == [3, 3, 3, 3]
        assert variables["MobilenetV1/Conv2d_13_pointwise/weights"] == [1, 1, 10, 10]


@pytest.mark.slow
def test_output_stride_gives_the_same_features_more_densely():
    def features(images, output_stride):
        net = Layers(training=False)
        mobilenet_v1(net, images, None, depth_multiplier=0.25, output_stride=output_stride)
        return net.end_points["Conv2d_13_pointwise"]

    strided, dense = strided_and_dense(features, output_stride=8)
    np.testing.assert_allclose(dense, strided, atol=1e-4 * np.abs(strided).max())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth_multiplier": 0}, "depth_multiplier=0: expected a number greater than 0."),
        ({"depth_multiplier": -0.5}, "depth_multiplier=-0.5: expected"),
        ({"min_depth": 0}, "min_depth=0: expected at least 1."),
        ({"output_stride": 5}, "output_stride=5: expected None or one of [2, 4, 8, 16, 32]."),
        ({"dropout_keep_prob": 0.0}, "dropout_keep_prob=0.0: expected"),
        ({"dropout_keep_prob": 1.5}, "dropout_keep_prob=1.5: expected"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=re.escape(message)):
        build("mobilenet_v1_025", [1, 32, 32, 3], **options)
