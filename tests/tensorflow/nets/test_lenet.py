"""LeNet: sizes, options, initial values, and that it learns."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.layers import Layers
from moxing.tensorflow.nets.lenet import NETWORKS

NETWORK = NETWORKS["lenet"]


def build(shape=(2, 28, 28, 1), num_classes=10, training=False, data_format="NHWC", weight_decay=0.0, **options):
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
    assert differing == {"LeNet/fc4/weights", "LeNet/fc4/biases"}


def test_sizes():
    with tf.Graph().as_default():
        _, logits = build((None, 33, 40, 1))
        assert logits.shape.as_list() == [None, 10]
        assert shapes()["LeNet/fc3/weights"] == [8 * 10 * 64, 1024]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="lenet was given images whose height or width"):
        build((2, None, 28, 1))


def test_smallest():
    with tf.Graph().as_default():
        build((1, NETWORK.smallest, NETWORK.smallest, 1), training=True)
        assert shapes()["LeNet/fc3/weights"] == [64, 1024]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Negative dimension size"):
        build((1, NETWORK.smallest, NETWORK.smallest - 1, 1))


def test_features():
    with tf.Graph().as_default():
        net, features = build(num_classes=None)
        assert features is net.end_points["fc3"]
        assert features.shape.as_list() == [2, 1024]
        assert "Logits" not in net.end_points
        assert not any("fc4" in name for name in shapes())


def test_channels_first():
    found = []
    for data_format, shape in (("NHWC", (2, 28, 36, 1)), ("NCHW", (2, 1, 28, 36))):
        with tf.Graph().as_default():
            net, logits = build(shape, training=True, data_format=data_format)
            assert logits.shape.as_list() == [2, 10]
            found.append(shapes())
    assert found[0] == found[1]
    assert net.end_points["pool2"].shape.as_list() == [2, 64, 7, 9]


def test_dropout():
    with tf.Graph().as_default():
        net, _ = build(training=True)
        assert net.end_points["dropout3"] is not net.end_points["fc3"]
    with tf.Graph().as_default():
        net, _ = build(training=True, dropout_keep_prob=1)
        assert net.end_points["dropout3"] is net.end_points["fc3"]
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"dropout_keep_prob=0.0: expected"):
        build(dropout_keep_prob=0.0)


def test_weights():
    with tf.Graph().as_default(), tf.Session() as session:
        build(weight_decay=0.1)
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 4
        session.run(tf.global_variables_initializer())
        for variable in tf.trainable_variables():
            # A normal distribution cut at two standard deviations has 0.8796 of its standard deviation left.
            expected = 0.0 if variable.op.name.endswith("biases") else 0.08796
            assert session.run(variable).std() == pytest.approx(expected, rel=0.05), variable.op.name


def test_it_learns():
    generator = np.random.default_rng(0)
    images, labels = generator.normal(size=[32, 12, 12, 1]), generator.integers(4, size=32)
    images[np.arange(32), labels * 3] += 2  # a bright row, which the label counts
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(0)
        net = Layers(training=True)
        logits = NETWORK.architecture(net, tf.constant(images, tf.float32), 4)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(step)
        assert session.run(loss) < 0.2
        np.testing.assert_allclose(session.run(net.end_points["Predictions"]).sum(1), 1, rtol=1e-5)
