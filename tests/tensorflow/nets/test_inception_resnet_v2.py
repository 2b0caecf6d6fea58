"""Inception-ResNet v2 beyond its golden: the auxiliary head, decaying biases, sizes, features, options, NCHW."""

from __future__ import annotations

from functools import partial

import golden_values
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built_with_shapes, differing_shapes

from moxing.tensorflow.nets.inception_resnet_v2 import NETWORKS

NETWORK = NETWORKS["inception_resnet_v2"]


build = partial(built_with_shapes, NETWORK.architecture)


@pytest.mark.slow
def test_nchw_has_the_variables_of_unknown_sizes_in_nhwc_and_the_pattern_finds_the_logits():
    with tf.Graph().as_default():
        net, logits, first = build([None, None, None, 3], training=True)
        assert logits.shape.as_list() == net.end_points["AuxLogits"].shape.as_list() == [None, 10]
        decaying = {loss.op.name.split("/Regularizer")[0] for loss in tf.get_collection("regularization_losses")}
    assert first == dict(golden_values.golden("inception_resnet_v2")["variables"])
    # TF-Slim's style for this network regularises the biases as well.
    assert len(decaying) == sum(name.endswith(("/weights", "/biases")) for name in first)
    with tf.Graph().as_default():
        # Larger than the published size: the auxiliary head keeps its kernel.
        net, logits, second = build([2, 3, 400, 320], num_classes=7, training=True, data_format="NCHW")
        assert net.end_points["PreAuxLogits"].shape == [2, 1088, 23, 18]
        assert net.end_points["global_pool"].shape == [2, 1536, 1, 1]
        assert logits.shape == net.end_points["AuxLogits"].shape == [2, 7]
    assert len(differing_shapes(first, second, NETWORK.logits_pattern)) == 4


@pytest.mark.slow
def test_the_smallest_image_and_another_activation():
    size = NETWORK.smallest
    with tf.Graph().as_default() as graph:
        net, _, variables = build([1, size, size, 3], training=True, activation_fn=tf.nn.relu6)
        assert net.end_points["PreAuxLogits"].shape == [1, 3, 3, 1088]
        assert net.end_points["PreAuxLogits"].op.type == "Relu6"
        assert "Relu" not in {op.type for op in graph.get_operations()}
        assert variables["InceptionResnetV2/AuxLogits/Conv2d_2a_5x5/weights"] == [1, 1, 128, 768]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Mixed_7a"):
        build([1, size - 1, size - 1, 3])


@pytest.mark.slow
def test_features():
    with tf.Graph().as_default():
        net, features, variables = build([1, 75, 75, 3], None)
        assert features.shape == [1, 1, 1, 1536]
        assert {name for name in net.end_points if "Logits" in name} == {"PreAuxLogits"}
        assert not any("Logits" in name for name in variables)


@pytest.mark.slow
def test_no_auxiliary_head():
    with tf.Graph().as_default():
        net, logits, variables = build([1, 75, 75, 3], create_aux_logits=False)
        assert logits.shape == [1, 10]
        assert "AuxLogits" not in net.end_points
        assert not any("AuxLogits" in name for name in variables)


@pytest.mark.slow
def test_bad_options():
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"dropout_keep_prob=0: expected a number above 0"):
        build([1, 75, 75, 3], dropout_keep_prob=0)
    with tf.Graph().as_default(), pytest.raises(TypeError, match="activation_fn='relu': expected a function"):
        build([1, 75, 75, 3], activation_fn="relu")
