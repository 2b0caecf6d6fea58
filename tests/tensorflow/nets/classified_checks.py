"""What AlexNet and OverFeat have in common: five convolutions, and the head of VGG, fc6 to fc8, as convolutions."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import check_too_small, shapes


def check_other_sizes_are_pooled(build, shape, scope, fc6) -> None:
    """Images of another size than the published one give one row of logits, with the published variables."""
    with tf.Graph().as_default():
        net, logits = build(shape, training=True)
        assert logits.shape.as_list() == [shape[0], 10]
        assert net.end_points["global_pool"].shape.as_list() == [shape[0], 1, 1, 4096]
        assert shapes()[f"{scope}/fc6/weights"] == fc6


def check_smallest(build, scope, smallest) -> None:
    """The smallest image leaves one place, and there is none smaller."""
    with tf.Graph().as_default():
        net, logits = build((1, smallest, smallest, 3), training=True)
        assert net.end_points[f"{scope}/fc7"].shape.as_list() == [1, 1, 1, 4096]
        assert logits.shape.as_list() == [1, 10]
    check_too_small(build, (1, smallest - 1, smallest, 3))


def check_features(build, scope) -> None:
    """Without classes, fc7 is the last layer."""
    with tf.Graph().as_default():
        net, features = build(num_classes=None)
        assert features is net.end_points[f"{scope}/fc7"]
        assert not any("fc8" in name for name in shapes())


def check_options(build) -> None:
    """Logits for every place on request; what is wrong is named."""
    with tf.Graph().as_default():
        logits = build((1, 288, 320, 3), spatial_squeeze=False)[1]
        assert logits.shape.as_list()[3] == 10
        assert min(logits.shape.as_list()[1:3]) > 1
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"dropout_keep_prob=-1: expected"):
        build(dropout_keep_prob=-1)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"global_pool=False gives a map of"):
        build((1, 288, 320, 3), global_pool=False)


def check_all_weights_decay(build) -> None:
    """Those of five convolutions and three layers of the head."""
    with tf.Graph().as_default():
        build(weight_decay=0.5)
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 8


def check_initial_values(build, scope, first_biases) -> None:
    """What the first layer and the head begin with."""
    with tf.Graph().as_default(), tf.Session() as session:
        build()
        values = {}
        for name in ("conv1/weights", "conv1/biases", "fc7/biases", "fc8/weights", "fc8/biases"):
            (variable,) = tf.global_variables(f"{scope}/{name}")
            session.run(variable.initializer)
            values[name] = session.run(variable)
        # Glorot and Bengio: uniform, variance 2 / (fan in + fan out).
        assert values["conv1/weights"].std() == pytest.approx((2 / (121 * (3 + 64))) ** 0.5, rel=0.05)
        # A normal distribution cut at two standard deviations has 0.8796 of its standard deviation left.
        assert values["fc8/weights"].std() == pytest.approx(0.8796 * 0.005, rel=0.05)
        np.testing.assert_allclose(values["conv1/biases"], first_biases)
        np.testing.assert_allclose(values["fc7/biases"], 0.1)
        np.testing.assert_allclose(values["fc8/biases"], 0)
