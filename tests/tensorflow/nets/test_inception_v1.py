"""Inception v1 beyond its golden: sizes, features, options, NCHW."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built_with_shapes, differing_shapes

from moxing.tensorflow.nets.inception_v1 import NETWORKS

NETWORK = NETWORKS["inception_v1"]


build = partial(built_with_shapes, NETWORK.architecture)


@pytest.mark.slow
def test_nchw_has_the_variables_and_shapes_of_nhwc_and_the_pattern_finds_the_logits():
    with tf.Graph().as_default():
        last, logits, first = build([2, 96, 64, 3], training=True)
        assert last.end_points["Mixed_5c"].shape == [2, 3, 2, 1024]
        assert logits.shape == [2, 10]
        decaying = len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    assert decaying == sum(name.endswith("/weights") for name in first)
    with tf.Graph().as_default():
        net, logits, second = build([2, 3, 96, 64], num_classes=7, training=True, data_format="NCHW")
        assert net.end_points["Mixed_5c"].shape == [2, 1024, 3, 2]
        assert net.end_points["AvgPool_0a_7x7"].shape == [2, 1024, 1, 1]
        assert logits.shape == [2, 7]
    assert len(differing_shapes(first, second, NETWORK.logits_pattern)) == 2


def test_an_image_of_unknown_size_is_pooled_as_a_whole():
    with tf.Graph().as_default(), tf.Session() as session:
        net, logits, _ = build([None, None, None, 3], 5)
        assert logits.shape.as_list() == [None, 5]
        session.run(tf.global_variables_initializer())
        names = ["Mixed_5c", "AvgPool_0a_7x7"]
        features, pooled = session.run([net.end_points[name] for name in names], {"images:0": np.ones([1, 70, 40, 3])})
        assert features.shape == (1, 3, 2, 1024)
        np.testing.assert_allclose(pooled, features.mean((1, 2), keepdims=True), rtol=1e-5, atol=1e-7)


def test_features():
    with tf.Graph().as_default():
        net, features, variables = build([1, NETWORK.smallest, NETWORK.smallest, 3], None, training=True)
        assert features.shape == [1, 1, 1, 1024]
        assert not any("Logits" in name for name in [*variables, *net.end_points])


def test_a_larger_image_has_logits_for_every_window():
    with tf.Graph().as_default():
        net, logits, _ = build([1, 256, 288, 3], spatial_squeeze=False)
        assert logits.shape == [1, 2, 3, 10]
        assert net.end_points["Predictions"].shape == [1, 2, 3, 10]
        tf.get_variable_scope().reuse_variables()
        net, logits, _ = build([1, 256, 288, 3], spatial_squeeze=False, global_pool=True)
        assert logits.shape == [1, 1, 1, 10]
        assert "AvgPool_0a_7x7" not in net.end_points
        assert net.end_points["global_pool"].shape == [1, 1, 1, 1024]


@pytest.mark.parametrize("keep", [0, -0.5, 1.5])
def test_a_fraction_to_keep_must_be_one(keep):
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=rf"dropout_keep_prob={keep}: expected a number above 0"),
    ):
        build([1, 32, 32, 3], dropout_keep_prob=keep)
