"""NASNet beyond its golden logits: training, options, sizes, the order of the axes.

It is large, so most tests have few cells, thin ones, with little in them: they are about the frame around the cells.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import differing_shapes, shapes

from moxing.tensorflow.nets import nasnet
from moxing.tensorflow.nets.nasnet import NETWORKS
from moxing.tensorflow.nets.nasnet_cells import CURRENT, IDENTITY, PREVIOUS, SEPARABLE_3X3, Cell
from moxing.tensorflow.nets.parts.layers import Layers

THIN = {"num_cells": 3, "num_conv_filters": 4, "stem_multiplier": 0.25}


def built(name, shape, num_classes=10, training=False, data_format="NHWC", **options):
    """End points and shapes of the variables of a thin network, in the default graph."""
    net = Layers(training=training, data_format=data_format, weight_decay=1e-4)
    images = tf.placeholder(tf.float32, shape)
    result = NETWORKS[name].architecture(net, images, num_classes, **{**THIN, **options})
    return result, net.end_points, shapes()


def thin(*args, **options):
    with tf.Graph().as_default():
        return built(*args, **options)


@pytest.fixture
def small_cells(monkeypatch):
    """Cells with one combination and, as in the real ones, state 1 in the output of the normal cell only."""
    combinations = (((CURRENT, SEPARABLE_3X3), (PREVIOUS, IDENTITY)),)
    monkeypatch.setattr(nasnet, "NORMAL", Cell(combinations, outputs=(PREVIOUS, 2)))
    monkeypatch.setattr(nasnet, "REDUCTION", Cell(combinations, outputs=(2,)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "kernel"),
    # 128 -> 63 -> 32 -> 16 -> 8 behind the first reduction, of which the windows of 5 with stride 3 leave 2.
    [("nasnet_cifar", 32, 4), ("nasnet_mobile", 128, 2)],
)
def test_auxiliary_head_in_training(name, size, kernel, small_cells):
    _, end_points, variables = thin(name, [2, size, size, 3], training=True)
    assert end_points["AuxLogits"].shape == [2, 10]
    _, without, evaluated = thin(name, [2, size, size, 3])
    assert set(end_points) - set(without) == {"AuxLogits"}
    extra = {name: shape for name, shape in variables.items() if name not in evaluated}
    assert {name: shape for name, shape in extra.items() if name.endswith("weights")} == {
        "aux_1/aux_logits/proj/weights": [1, 1, 16, 128],
        "aux_1/aux_logits/Conv/weights": [kernel, kernel, 128, 768],
        "aux_1/aux_logits/FC/weights": [768, 10],
    }
    assert {"aux_1/aux_logits/aux_bn0/gamma", "aux_1/aux_logits/aux_bn1/beta", "aux_1/aux_logits/FC/biases"} < set(
        extra
    )


def test_no_auxiliary_head_on_request(small_cells):
    _, end_points, variables = thin("nasnet_cifar", [2, 8, 8, 3], training=True, use_aux_head=False)
    assert "AuxLogits" not in end_points
    assert not [name for name in variables if name.startswith("aux")]


@pytest.mark.parametrize("training", [False, True])
def test_features(training, small_cells):
    features, end_points, variables = thin("nasnet_mobile", [2, 32, 32, 3], None, training)
    assert features.shape == [2, 2 * 4 * 4]
    assert features is end_points["global_pool"]
    assert not {"Logits", "Predictions", "AuxLogits"} & set(end_points)
    assert not [name for name in variables if "FC" in name]


@pytest.mark.slow
def test_logits_pattern_hits_what_depends_on_the_classes(small_cells):
    # In training, with the auxiliary head; the variables of evaluation are among these.
    ten, seven = (thin("nasnet_cifar", [2, 8, 8, 3], num_classes, training=True)[2] for num_classes in (10, 7))
    assert len(differing_shapes(ten, seven, NETWORKS["nasnet_cifar"].logits_pattern)) == 4
    assert len({found.logits_pattern for found in NETWORKS.values()}) == 1


@pytest.mark.slow
def test_nchw_has_the_same_variables():
    last, _, variables = thin("nasnet_cifar", [2, 10, 16, 3], training=True)
    first, end_points, others = thin("nasnet_cifar", [2, 3, 10, 16], training=True, data_format="NCHW")
    assert first.shape == last.shape == end_points["AuxLogits"].shape == [2, 10]
    assert others == variables
    # A normal cell joins 6 states.
    assert end_points["Cell_1"].shape == [2, 6 * 8, 5, 8]


@pytest.mark.parametrize("name", ["nasnet_cifar", "nasnet_mobile"])
@pytest.mark.parametrize("training", [False, True])
def test_smallest(name, training, small_cells):
    smallest = NETWORKS[name].smallest
    logits, _, _ = thin(name, [2, smallest, smallest, 3], training=training)
    assert logits.shape == [2, 10]
    if smallest > 1:
        with pytest.raises(ValueError, match="Negative dimension"):
            thin(name, [2, smallest - 1, smallest - 1, 3], training=training)


@pytest.mark.slow
def test_unknown_sizes_in_training_pool_the_auxiliary_head(small_cells):
    logits, end_points, variables = thin("nasnet_mobile", [None, None, None, 3], training=True)
    assert logits.shape.as_list() == end_points["AuxLogits"].shape.as_list() == [None, 10]
    assert variables["aux_1/aux_logits/Conv/weights"] == [1, 1, 128, 768]


@pytest.mark.slow
def test_unknown_size_gives_the_same_logits(small_cells):
    image = np.random.RandomState(0).uniform(-1, 1, (1, 37, 26, 3)).astype("float32")
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        known, known_points, variables = built("nasnet_large", [1, 37, 26, 3])
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            unknown, unknown_points, same = built("nasnet_large", [None, None, None, 3])
        assert same == variables
        inputs = [op.outputs[0] for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            results = session.run([known, unknown, known_points["Predictions"]], dict.fromkeys(inputs, image))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-6)
    assert np.ptp(results[0]) > 0
    assert results[2].sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_every_weight_has_a_gradient_in_training():
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        tf.train.get_or_create_global_step()
        net = Layers(training=True)
        images = tf.placeholder(tf.float32, [None, None, None, 3])
        options = {**THIN, "drop_path_keep_prob": 0.5, "total_training_steps": 10, "dense_dropout_keep_prob": 0.5}
        logits = nasnet.nasnet(net, images, 3, imagenet=False, **options)
        heads = [logits, net.end_points["AuxLogits"]]
        loss = tf.add_n([tf.losses.sparse_softmax_cross_entropy([0, 1, 2, 0], head) for head in heads])
        gradients = tf.gradients(loss, tf.trainable_variables())
        assert None not in gradients
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            batch = np.random.RandomState(0).uniform(-1, 1, (4, 9, 8, 3))
            assert all(np.isfinite(gradient).all() for gradient in session.run(gradients, {images: batch}))


@pytest.mark.slow
def test_the_cell_behind_a_reduction_skips_its_input_or_not(small_cells):
    # Cell_1 stands behind the first reduction. Its input's input is Cell_0, of 2 states of depth 4; below is the stem.
    expected = {False: [1, 1, 8, 4], True: [1, 1, 1, 4]}
    for skips, shape in expected.items():
        variables = thin("nasnet_cifar", [1, 8, 8, 3], skip_reduction_layer_input=skips)[2]
        assert variables["cell_1/path1_conv/weights"] == shape


@pytest.mark.slow
def test_dropping_is_for_training(small_cells):
    def random_operations(training: bool, **options) -> int:
        with tf.Graph().as_default() as graph:
            built("nasnet_cifar", [2, 8, 8, 3], 10, training, **options)
            initial = [
                op for op in graph.get_operations() if op.type == "RandomUniform" and "nitializer" not in op.name
            ]
            return len(initial)

    # A branch in 3 normal and 2 reduction cells; the published network for CIFAR has no dropout.
    assert random_operations(True) == 5
    assert random_operations(True, drop_path_keep_prob=1.0, dense_dropout_keep_prob=0.5) == 1
    assert random_operations(False, dense_dropout_keep_prob=0.5) == 0


@pytest.mark.slow
def test_all_weights_decay(small_cells):
    with tf.Graph().as_default():
        variables = built("nasnet_cifar", [2, 8, 8, 3])[2]
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert len(losses) == len([name for name in variables if name.endswith("weights")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_cells": 2}, "num_cells=2: expected at least 3"),
        ({"num_conv_filters": 3}, "num_conv_filters=3: expected at least 4"),
        ({"stem_multiplier": 0.2}, "stem_multiplier=0.2: expected at least 0.25"),
        ({"drop_path_keep_prob": 0}, "drop_path_keep_prob=0: expected a number above 0 and at most 1"),
        ({"total_training_steps": 0}, "total_training_steps=0: expected at least 1, or None"),
        ({"dense_dropout_keep_prob": 1.5}, "dense_dropout_keep_prob=1.5: expected a number above 0 and at most 1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        thin("nasnet_mobile", [1, 32, 32, 3], **options)
