"""OverFeat: sizes, initial values, options."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.layers import Layers
from moxing.tensorflow.nets.overfeat import NETWORKS

NETWORK = NETWORKS["overfeat"]


def build(shape=(2, 231, 231, 3), num_classes=10, training=False, data_format="NHWC", weight_decay=0.0, **options):
    net = Layers(training=training, data_format=data_format, weight_decay=weight_decay)
    return net, NETWORK.architecture(net, tf.placeholder(tf.float32, shape), num_classes, **options)


def shapes():
    return {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}


def test_only_the_last_layer_depends_on_the_classes():
    found = []
    for classes in (10, 7):
        with tf.Graph().as_default():
            build(num_classes=classes, training=True)
            found.append(shapes())
    ten, seven = found
    differing = {variable for variable in ten if ten[variable] != seven[variable]}
    assert differing == {variable for variable in ten if re.search(NETWORK.logits_pattern, variable)}
    assert differing == {"overfeat/fc8/weights", "overfeat/fc8/biases"}


@pytest.mark.parametrize("shape", [(2, 288, 320, 3), (2, None, None, 3), (None, None, 231, 3)])
def test_other_sizes_are_pooled(shape):
    with tf.Graph().as_default():
        net, logits = build(shape, training=True)
        assert logits.shape.as_list() == [shape[0], 10]
        assert net.end_points["global_pool"].shape.as_list() == [shape[0], 1, 1, 4096]
        assert shapes()["overfeat/fc6/weights"] == [6, 6, 1024, 3072]


def test_smallest():
    smallest = NETWORK.smallest
    with tf.Graph().as_default():
        net, logits = build((1, smallest, smallest, 3), training=True)
        assert net.end_points["overfeat/fc7"].shape.as_list() == [1, 1, 1, 4096]
        assert logits.shape.as_list() == [1, 10]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Negative dimension size"):
        build((1, smallest - 1, smallest, 3))


def test_features():
    with tf.Graph().as_default():
        net, features = build(num_classes=None)
        assert features is net.end_points["overfeat/fc7"]
        assert not any("fc8" in name for name in shapes())


def test_channels_first():
    found = []
    for data_format, shape in (("NHWC", (2, 256, 256, 3)), ("NCHW", (2, 3, 256, 256))):
        with tf.Graph().as_default():
            net, logits = build(shape, training=True, data_format=data_format)
            assert logits.shape.as_list() == [2, 10]
            found.append(shapes())
    assert found[0] == found[1]
    assert net.end_points["overfeat/conv5"].shape.as_list()[:2] == [2, 1024]


def test_options():
    with tf.Graph().as_default():
        logits = build((1, 288, 320, 3), spatial_squeeze=False)[1]
        assert logits.shape.as_list()[3] == 10
        assert min(logits.shape.as_list()[1:3]) > 1
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"dropout_keep_prob=-1: expected"):
        build(dropout_keep_prob=-1)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"global_pool=False leaves logits of"):
        build((1, 288, 320, 3), global_pool=False)


def test_all_weights_decay():
    with tf.Graph().as_default():
        build(weight_decay=0.5)
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 8


def test_initial_values():
    with tf.Graph().as_default(), tf.Session() as session:
        build()
        values = {}
        for name in ("conv1/weights", "conv1/biases", "fc7/biases", "fc8/weights", "fc8/biases"):
            (variable,) = tf.global_variables(f"overfeat/{name}")
            session.run(variable.initializer)
            values[name] = session.run(variable)
        # Glorot and Bengio: uniform, variance 2 / (fan in + fan out).
        assert values["conv1/weights"].std() == pytest.approx((2 / (121 * (3 + 64))) ** 0.5, rel=0.05)
        # A normal distribution cut at two standard deviations has 0.8796 of its standard deviation left.
        assert values["fc8/weights"].std() == pytest.approx(0.8796 * 0.005, rel=0.05)
        np.testing.assert_allclose(values["conv1/biases"], 0)
        np.testing.assert_allclose(values["fc7/biases"], 0.1)
        np.testing.assert_allclose(values["fc8/biases"], 0)
