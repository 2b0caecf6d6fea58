"""Inception v4: its golden has no logits, so there are some here; and the auxiliary head, sizes, features, NCHW."""

from __future__ import annotations

from functools import partial

import golden_values
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built_with_shapes, differing_shapes

from moxing.tensorflow.nets.inception_v4 import NETWORKS

NETWORK = NETWORKS["inception_v4"]

#: For an image of 107 x 107, by the layers of tf_slim 1.1.0 put together as TF-Slim's inception_v4 has them.
LOGITS = [
    *(-0.42726135, 0.07303280, -0.17538911, -0.04618437, -0.18171018),
    *(-0.35201871, -0.04686418, 0.18301135, -0.11283732, 0.28491598),
]
AUXILIARY_LOGITS = [
    *(0.39527714, -0.13923299, -0.11927282, 0.03682943, -0.09258164),
    *(0.05684553, -0.07865975, -0.10450978, 0.46952084, -0.29529837),
]


build = partial(built_with_shapes, NETWORK.architecture)


@pytest.mark.slow
def test_logits_and_auxiliary_logits():
    with tf.Graph().as_default(), tf.Session() as session:
        net, logits, _ = build([1, 107, 107, 3])
        golden_values.assign_values(session)
        found = session.run([logits, net.end_points["AuxLogits"]], {"images:0": golden_values.image_of(107)})
    np.testing.assert_allclose(found[0], [LOGITS], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[1], [AUXILIARY_LOGITS], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_nchw_has_the_variables_of_unknown_sizes_in_nhwc_and_the_pattern_finds_the_logits():
    with tf.Graph().as_default():
        net, logits, first = build([None, None, None, 3], training=True)
        assert logits.shape.as_list() == net.end_points["AuxLogits"].shape.as_list() == [None, 10]
        assert len(tf.get_collection("regularization_losses")) == sum(name.endswith("/weights") for name in first)
    assert first == dict(golden_values.golden("inception_v4")["variables"])
    with tf.Graph().as_default():
        # Larger than the published size: the auxiliary head keeps its kernel.
        net, logits, second = build([2, 3, 400, 320], num_classes=7, training=True, data_format="NCHW")
        assert net.end_points["Mixed_6h"].shape == [2, 1024, 23, 18]
        assert net.end_points["global_pool"].shape == [2, 1536, 1, 1]
        assert logits.shape == net.end_points["AuxLogits"].shape == [2, 7]
    assert len(differing_shapes(first, second, NETWORK.logits_pattern)) == 4


@pytest.mark.slow
def test_the_smallest_image_in_training():
    size = NETWORK.smallest
    with tf.Graph().as_default():
        net, _, variables = build([1, size, size, 3], training=True)
        assert net.end_points["Mixed_6h"].shape == [1, 3, 3, 1024]
        assert variables["InceptionV4/AuxLogits/Conv2d_2a/weights"] == [1, 1, 128, 768]
        tf.get_variable_scope().reuse_variables()
        with pytest.raises(ValueError, match="Mixed_7a"):
            build([1, size - 1, size - 1, 3])


@pytest.mark.slow
def test_features_and_no_auxiliary_head():
    with tf.Graph().as_default():
        net, features, variables = build([1, 75, 75, 3], None)
        assert features.shape == [1, 1, 1, 1536]
        assert not any("Logits" in name for name in [*variables, *net.end_points])
    with tf.Graph().as_default():
        net, logits, variables = build([1, 75, 75, 3], create_aux_logits=False)
        assert logits.shape == [1, 10]
        assert not any("AuxLogits" in name for name in [*variables, *net.end_points])


@pytest.mark.slow
def test_a_fraction_to_keep_must_be_one():
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"dropout_keep_prob=0: expected a number above 0"):
        build([1, 75, 75, 3], dropout_keep_prob=0)
