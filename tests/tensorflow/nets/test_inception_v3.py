"""Inception v3 beyond its golden: the auxiliary head, sizes, features, options, NCHW."""

from __future__ import annotations

from functools import partial

import golden_values
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built_with_shapes, differing_shapes

from moxing.tensorflow.nets.inception_v3 import NETWORKS

NETWORK = NETWORKS["inception_v3"]


build = partial(built_with_shapes, NETWORK.architecture)


@pytest.mark.slow
def test_auxiliary_logits_are_those_of_tf_slim():
    import tf_slim
    from tf_slim.nets import inception_v3 as slim

    images = golden_values.image_of(139)
    with tf.Graph().as_default(), tf.Session() as session, tf_slim.arg_scope(slim.inception_v3_arg_scope()):
        _, theirs = slim.inception_v3(tf.constant(images), 10, is_training=False, depth_multiplier=0.25)
        golden_values.assign_values(session)
        expected = session.run({name: theirs[name] for name in ("AuxLogits", "Mixed_7a", "Logits")})
    with tf.Graph().as_default(), tf.Session() as session:
        net, _, _ = build([1, 139, 139, 3], depth_multiplier=0.25)
        golden_values.assign_values(session)
        found = session.run({name: net.end_points[name] for name in expected}, {"images:0": images})
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4 * np.abs(value).max(), err_msg=name)


@pytest.mark.slow
def test_nchw_has_the_variables_and_shapes_of_nhwc_and_the_pattern_finds_the_logits():
    with tf.Graph().as_default():
        net, logits, first = build([2, 139, 107, 3], training=True)
        assert net.end_points["Mixed_6e"].shape == [2, 7, 5, 768]
        assert logits.shape == net.end_points["AuxLogits"].shape == [2, 10]
        assert len(tf.get_collection("regularization_losses")) == sum(name.endswith("/weights") for name in first)
    with tf.Graph().as_default():
        net, logits, second = build([2, 3, 139, 107], num_classes=7, training=True, data_format="NCHW")
        assert net.end_points["Mixed_7c"].shape == [2, 2048, 3, 2]
        assert logits.shape == net.end_points["AuxLogits"].shape == [2, 7]
    assert len(differing_shapes(first, second, NETWORK.logits_pattern)) == 4


@pytest.mark.slow
def test_unknown_and_larger_sizes_have_the_variables_of_the_published_size():
    with tf.Graph().as_default():
        net, logits, variables = build([None, None, None, 3], training=True)
        assert logits.shape.as_list() == net.end_points["AuxLogits"].shape.as_list() == [None, 10]
        published = dict(golden_values.golden("inception_v3")["variables"])
        assert variables == published
        tf.get_variable_scope().reuse_variables()
        net, logits, _ = build([1, 400, 400, 3], training=True)
        assert logits.shape == net.end_points["AuxLogits"].shape == [1, 10]


@pytest.mark.slow
def test_the_smallest_image_and_the_depth_multiplier():
    size = NETWORK.smallest
    with tf.Graph().as_default():
        net, _, variables = build([1, size, size, 3], training=True, depth_multiplier=0.25, min_depth=16)
        assert net.end_points["Mixed_6e"].shape == [1, 3, 3, 192]
        assert variables["InceptionV3/AuxLogits/Conv2d_2a_1x1/weights"] == [1, 1, 32, 192]
        assert variables["InceptionV3/Conv2d_1a_3x3/weights"] == [3, 3, 3, 16]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Mixed_7a"):
        build([1, size - 1, size - 1, 3], depth_multiplier=0.25)


@pytest.mark.slow
def test_features_and_no_auxiliary_head():
    with tf.Graph().as_default():
        net, features, variables = build([1, 75, 75, 3], None, training=True)
        assert features.shape == [1, 1, 1, 2048]
        assert not any("Logits" in name for name in [*variables, *net.end_points])
    with tf.Graph().as_default():
        net, _, variables = build([1, 75, 75, 3], training=True, create_aux_logits=False, depth_multiplier=0.25)
        assert "Logits" in net.end_points
        assert not any("AuxLogits" in name for name in [*variables, *net.end_points])


@pytest.mark.slow
def test_without_spatial_squeeze():
    with tf.Graph().as_default():
        # 331: features of 9x9, under a window of 8x8.
        net, logits, _ = build([1, 331, 331, 3], spatial_squeeze=False, depth_multiplier=0.25)
        assert logits.shape == [1, 2, 2, 10]
        assert net.end_points["AuxLogits"].shape == [1, 1, 1, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout_keep_prob": 2}, r"dropout_keep_prob=2: expected a number above 0"),
        ({"depth_multiplier": -1}, "depth_multiplier=-1: .*above 0"),
        ({"min_depth": 0}, "min_depth=0: .*at least 1"),
    ],
)
def test_bad_options(options, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        build([1, 75, 75, 3], **options)
