"""CifarNet: local response normalisation, what decays, sizes, options, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built, channels_first, check_it_learns, check_too_small, dependent_on_classes, shapes

from moxing.tensorflow.nets.cifarnet import NETWORKS, locally_normalised
from moxing.tensorflow.nets.parts.layers import Layers

NETWORK = NETWORKS["cifarnet"]


def build(shape=(2, 32, 32, 3), **options):
    return built(NETWORK.architecture, shape, **options)


def test_local_response_normalisation():
    x = np.random.default_rng(0).normal(size=[2, 3, 4, 20]).astype("float32") * 30
    sums = np.stack([(x[..., max(0, at - 4) : at + 5] ** 2).sum(-1) for at in range(20)], axis=-1)
    expected = x / (1 + 0.001 / 9 * sums) ** 0.75
    with tf.Graph().as_default(), tf.Session() as session:
        last = locally_normalised(Layers(training=True), tf.constant(x))
        first = locally_normalised(Layers(training=True, data_format="NCHW"), tf.constant(x.transpose(0, 3, 1, 2)))
        np.testing.assert_allclose(session.run(last), expected, rtol=1e-4)
        np.testing.assert_allclose(session.run(first), expected.transpose(0, 3, 1, 2), rtol=1e-4)


def test_only_the_last_layer_depends_on_the_classes():
    differing = dependent_on_classes(build, NETWORK.logits_pattern)
    assert differing == {"CifarNet/logits/weights", "CifarNet/logits/biases"}


def test_sizes():
    with tf.Graph().as_default():
        _, logits = build((None, 41, 48, 3))
        assert logits.shape.as_list() == [None, 10]
        assert shapes()["CifarNet/fc3/weights"] == [10 * 12 * 64, 384]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="cifarnet was given images whose height or width"):
        build((2, 32, None, 3))


def test_smallest():
    with tf.Graph().as_default():
        build((1, NETWORK.smallest, NETWORK.smallest, 3), training=True)
        assert shapes()["CifarNet/fc3/weights"] == [64, 384]
    check_too_small(build, (1, NETWORK.smallest - 1, NETWORK.smallest, 3))


def test_features():
    with tf.Graph().as_default():
        net, features = build(num_classes=None)
        assert features is net.end_points["fc4"]
        assert features.shape.as_list() == [2, 192]
        assert "Logits" not in net.end_points
        assert not any("logits" in name for name in shapes())


def test_channels_first():
    net = channels_first(build, (2, 32, 24, 3))
    assert net.end_points["pool2"].shape.as_list() == [2, 64, 8, 6]


def test_only_the_fully_connected_layers_decay():
    with tf.Graph().as_default():
        net, _ = build(weight_decay=0.004)
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert sorted(loss.op.name.split("/Regularizer")[0] for loss in losses) == [
            "CifarNet/fc3/weights",
            "CifarNet/fc4/weights",
        ]
        assert net.weight_decay == 0.004


def test_initial_values():
    # The deviations that the weights are drawn with; the others are the constants of the biases.
    deviations = {"conv1": 0.05, "conv2": 0.05, "fc3": 0.04, "fc4": 0.04, "logits": 1 / 192}
    constants = {"conv1": 0, "conv2": 0, "fc3": 0.1, "fc4": 0.1, "logits": 0}
    with tf.Graph().as_default(), tf.Session() as session:
        build()
        session.run(tf.global_variables_initializer())
        for variable in tf.trainable_variables():
            _, layer, kind = variable.op.name.split("/")
            values = session.run(variable)
            if kind == "weights":
                # A normal distribution cut at two standard deviations has 0.8796 of its standard deviation left.
                assert values.std() == pytest.approx(0.8796 * deviations[layer], rel=0.06), layer
            else:
                np.testing.assert_allclose(values, constants[layer])


def test_bad_dropout():
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"dropout_keep_prob=2: expected"):
        build(dropout_keep_prob=2)


def test_it_learns():
    check_it_learns(
        NETWORK.architecture,
        channels=3,
        brightness=3,
        optimizer=tf.train.MomentumOptimizer(0.02, 0.9),
        steps=80,
        loss_below=0.3,
    )
