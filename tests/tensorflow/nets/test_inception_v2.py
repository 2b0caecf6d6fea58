"""Inception v2: its golden has no logits, so TF-Slim's network is run beside it; and sizes, options, NCHW."""

from __future__ import annotations

from functools import partial

import golden_values
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built_with_shapes, differing_shapes

from moxing.tensorflow.nets.inception_v2 import NETWORKS

NETWORK = NETWORKS["inception_v2"]


build = partial(built_with_shapes, NETWORK.architecture)


@pytest.mark.slow
def test_computes_what_tf_slim_computes():
    import tf_slim
    from tf_slim.nets import inception_v2 as slim

    images = golden_values.image_of(64)
    with tf.Graph().as_default(), tf.Session() as session, tf_slim.arg_scope(slim.inception_v2_arg_scope()):
        _, theirs = slim.inception_v2(tf.constant(images), 10, is_training=False)
        golden_values.assign_values(session)
        expected = session.run({name: theirs[name] for name in ("Conv2d_1a_7x7", "Mixed_4a", "Mixed_5c", "Logits")})
    with tf.Graph().as_default(), tf.Session() as session:
        net, _, _ = build([1, 64, 64, 3])
        golden_values.assign_values(session)
        found = session.run({name: net.end_points[name] for name in expected}, {"images:0": images})
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4 * np.abs(value).max(), err_msg=name)


@pytest.mark.slow
def test_nchw_has_the_variables_and_shapes_of_nhwc_and_the_pattern_finds_the_logits():
    with tf.Graph().as_default():
        net, logits, first = build([2, 96, 64, 3], training=True)
        assert net.end_points["Mixed_5c"].shape == [2, 3, 2, 1024]
        assert logits.shape == [2, 10]
        decaying = {loss.op.name.split("/Regularizer")[0] for loss in tf.get_collection("regularization_losses")}
    # Neither half of the separable convolution decays, as in TF-Slim.
    assert decaying == {name for name in first if name.endswith("/weights")}
    with tf.Graph().as_default():
        net, logits, second = build([2, 3, 96, 64], num_classes=7, training=True, data_format="NCHW")
        assert net.end_points["Conv2d_1a_7x7"].shape == [2, 64, 48, 32]
        assert net.end_points["Mixed_5c"].shape == [2, 1024, 3, 2]
        assert logits.shape == [2, 7]
    assert len(differing_shapes(first, second, NETWORK.logits_pattern)) == 2


@pytest.mark.slow
def test_features_of_an_image_of_unknown_size_and_one_channel():
    with tf.Graph().as_default():
        net, features, variables = build([None, None, None, 1], None)
        assert features.shape.as_list() == [None, 1, 1, 1024]
        assert variables["InceptionV2/Conv2d_1a_7x7/depthwise_weights"] == [7, 7, 1, 8]
        assert variables["InceptionV2/Conv2d_1a_7x7/pointwise_weights"] == [1, 1, 8, 64]
        assert not any("Logits" in name for name in [*variables, *net.end_points])


@pytest.mark.slow
def test_depth_multiplier_on_the_smallest_image():
    with tf.Graph().as_default():
        size = NETWORK.smallest
        net, _, variables = build([1, size, size, 3], training=True, depth_multiplier=0.25, min_depth=20)
        assert variables["InceptionV2/Conv2d_1a_7x7/depthwise_weights"] == [7, 7, 3, 6]  # 20 // 3
        assert variables["InceptionV2/Conv2d_2c_3x3/weights"] == [3, 3, 20, 48]
        assert net.end_points["Mixed_5c"].shape == [1, 1, 1, 88 + 80 + 56 + 32]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout_keep_prob": 0}, r"dropout_keep_prob=0: expected a number above 0"),
        ({"depth_multiplier": 0}, "depth_multiplier=0: .*above 0"),
        ({"min_depth": 0}, "min_depth=0: .*at least 1"),
    ],
)
def test_bad_options(options, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        build([1, 32, 32, 3], **options)
