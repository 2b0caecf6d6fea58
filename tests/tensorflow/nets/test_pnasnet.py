"""PNASNet beyond its golden logits: training, options, sizes, the order of the axes.

It is large, so most tests have few cells, thin ones, with little in them: they are about the frame around the cells.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import differing_shapes, shapes

from moxing.tensorflow.nets import pnasnet
from moxing.tensorflow.nets.nasnet_cells import CURRENT, IDENTITY, PREVIOUS, SEPARABLE_3X3, Cell
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.pnasnet import NETWORKS

THIN = {"num_cells": 3, "num_conv_filters": 6, "stem_multiplier": 0.25}


def built(shape, num_classes=10, training=False, data_format="NHWC", name="pnasnet_mobile", **options):
    """End points and shapes of the variables of a thin network, in the default graph."""
    net = Layers(training=training, data_format=data_format)
    images = tf.placeholder(tf.float32, shape)
    result = NETWORKS[name].architecture(net, images, num_classes, **{**THIN, **options})
    return result, net.end_points, shapes()


def thin(*args, **options):
    with tf.Graph().as_default():
        return built(*args, **options)


@pytest.fixture
def small_cells(monkeypatch):
    """Cells with one combination."""
    monkeypatch.setattr(pnasnet, "CELL", Cell((((CURRENT, SEPARABLE_3X3), (PREVIOUS, IDENTITY)),), outputs=(2,)))


@pytest.mark.slow
def test_cells_are_strided_where_the_image_is_halved():
    _, end_points, variables = thin([2, 224, 224, 3])
    shapes = {name: value.shape.as_list()[1:] for name, value in end_points.items() if value.shape.rank == 4}
    # The states of the stem's cells have a quarter (rounded down) and a half of the 6 filters; five of them are joined.
    assert shapes == {"Stem": [28, 28, 15], "Cell_0": [28, 28, 30], "Cell_1": [14, 14, 60], "Cell_2": [7, 7, 120]}
    assert variables["cell_stem_0/1x1/weights"] == [1, 1, 8, 1]
    # Halving an odd depth: the second path has the larger half.
    assert variables["cell_stem_1/path1_conv/weights"] == [1, 1, 8, 1]
    assert variables["cell_stem_1/path2_conv/weights"] == [1, 1, 8, 2]


@pytest.mark.slow
def test_auxiliary_head_in_training(small_cells):
    _, end_points, variables = thin([2, 128, 128, 3], training=True)
    _, without, evaluated = thin([2, 128, 128, 3])
    assert set(end_points) - set(without) == {"AuxLogits"}
    assert end_points["AuxLogits"].shape == [2, 10]
    weights = {name: shape for name, shape in variables.items() if name not in evaluated and "weights" in name}
    # Behind the cell before the second halving: 8 x 8, of which the windows of 5 with stride 3 leave 2.
    assert weights == {
        "aux_1/aux_logits/proj/weights": [1, 1, 12, 128],
        "aux_1/aux_logits/Conv/weights": [2, 2, 128, 768],
        "aux_1/aux_logits/FC/weights": [768, 10],
    }


def test_no_auxiliary_head_on_request(small_cells):
    assert "AuxLogits" not in thin([2, 32, 32, 3], training=True, use_aux_head=False)[1]


def test_features(small_cells):
    features, end_points, variables = thin([2, 32, 32, 3], None, training=True)
    assert features.shape == [2, 6 * 4]
    assert features is end_points["global_pool"]
    assert not [name for name in variables if "FC" in name]


@pytest.mark.slow
def test_logits_pattern_hits_what_depends_on_the_classes(small_cells):
    # In training, with the auxiliary head; the variables of evaluation are among these.
    ten, seven = (thin([2, 32, 32, 3], num_classes, training=True)[2] for num_classes in (10, 7))
    assert len(differing_shapes(ten, seven, NETWORKS["pnasnet_mobile"].logits_pattern)) == 4


@pytest.mark.slow
def test_nchw_has_the_same_variables():
    last, _, variables = thin([2, 40, 64, 3], training=True)
    first, end_points, others = thin([2, 3, 40, 64], training=True, data_format="NCHW")
    assert first.shape == last.shape == end_points["AuxLogits"].shape == [2, 10]
    assert others == variables
    assert end_points["Cell_1"].shape == [2, 60, 3, 4]


@pytest.mark.parametrize("training", [False, True])
def test_smallest(training, small_cells):
    smallest = NETWORKS["pnasnet_mobile"].smallest
    assert thin([2, smallest, smallest, 3], training=training)[0].shape == [2, 10]
    with pytest.raises(ValueError, match="Negative dimension"):
        thin([2, smallest - 1, smallest - 1, 3], training=training)


def test_unknown_size_gives_the_same_logits(small_cells):
    image = np.random.RandomState(0).uniform(-1, 1, (1, 37, 26, 3)).astype("float32")
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        known, _, variables = built([1, 37, 26, 3])
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            unknown, _, same = built([None, None, None, 3])
        assert same == variables
        inputs = [op.outputs[0] for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            results = session.run([known, unknown], dict.fromkeys(inputs, image))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-6)
    assert np.ptp(results[0]) > 0


def test_drop_path_reaches_its_probability_in_the_last_cell(small_cells):
    with tf.Graph().as_default() as graph:
        built([2, 32, 32, 3], training=True, name="pnasnet_large", total_training_steps=None)
        divisors = {}
        for op in graph.get_operations():
            if op.type == "RealDiv" and "comb_iter" in op.name:
                keep_prob = tf.get_static_value(op.inputs[1])
                divisors.setdefault(op.name.split("/")[0], []).append(float(keep_prob))
    # 1 - 0.4 * 1/5, 2/5, ...
    expected = {"cell_stem_0": 0.92, "cell_stem_1": 0.84, "cell_0": 0.76, "cell_1": 0.68, "cell_2": 0.6}
    assert divisors == {name: pytest.approx([value]) for name, value in expected.items()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_cells": 2}, "num_cells=2: expected at least 3"),
        ({"num_conv_filters": 3}, "num_conv_filters=3: expected at least 4"),
        ({"drop_path_keep_prob": 1.2}, "drop_path_keep_prob=1.2: expected a number above 0 and at most 1"),
        ({"dense_dropout_keep_prob": 0}, "dense_dropout_keep_prob=0: expected a number above 0 and at most 1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        thin([1, 32, 32, 3], **options)
