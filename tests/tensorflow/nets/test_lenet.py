"""LeNet: sizes, options, initial values, and that it learns."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from network_checks import built, channels_first, check_it_learns, check_too_small, dependent_on_classes, shapes

from moxing.tensorflow.nets.lenet import NETWORKS

NETWORK = NETWORKS["lenet"]


def build(shape=(2, 28, 28, 1), **options):
    return built(NETWORK.architecture, shape, **options)


def test_only_the_last_layer_depends_on_the_classes():
    differing = dependent_on_classes(build, NETWORK.logits_pattern)
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
    check_too_small(build, (1, NETWORK.smallest, NETWORK.smallest - 1, 1))


def test_features():
    with tf.Graph().as_default():
        net, features = build(num_classes=None)
        assert features is net.end_points["fc3"]
        assert features.shape.as_list() == [2, 1024]
        assert "Logits" not in net.end_points
        assert not any("fc4" in name for name in shapes())


def test_channels_first():
    net = channels_first(build, (2, 28, 36, 1))
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
        # The first layer has 800 weights: by chance alone their deviation is 5 % off in one of sixty cases.
        tf.set_random_seed(0)
        build(weight_decay=0.1)
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 4
        session.run(tf.global_variables_initializer())
        for variable in tf.trainable_variables():
            # A normal distribution cut at two standard deviations has 0.8796 of its standard deviation left.
            expected = 0.0 if variable.op.name.endswith("biases") else 0.08796
            assert session.run(variable).std() == pytest.approx(expected, rel=0.05), variable.op.name


def test_it_learns():
    check_it_learns(
        NETWORK.architecture,
        channels=1,
        brightness=2,
        optimizer=tf.train.GradientDescentOptimizer(0.01),
        steps=60,
        loss_below=0.2,
    )
