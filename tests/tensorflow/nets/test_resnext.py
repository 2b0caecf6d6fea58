"""ResNeXt: parameters, the two forms against each other, gradients, sizes, axes. Most tests build short ones."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.batch_norm import BatchNorm
from moxing.tensorflow.nets.layers import Layers, Style
from moxing.tensorflow.nets.resnet_v1 import Unit
from moxing.tensorflow.nets.resnext import NETWORKS, form_b, form_c, resnext

FORMS = {"b": form_b, "c": form_c}


def build(form, shape, num_classes=10, training=False, data_format="NHWC", units=(1, 1, 1, 1), **options):
    net = Layers(training=training, data_format=data_format)
    images = tf.placeholder(tf.float32, shape, name="images")
    short = partial(resnext, name="short", units=units, grouped=FORMS[form])
    return net, short(net, images, num_classes, **options)


def shapes():
    return {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}


def run(fetches, shape):
    images = np.random.default_rng(0).uniform(-1, 1, shape)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, {"images:0": images})


# torchvision states these for 1,000 classes (`num_params` of ResNeXt50_32X4D_Weights), and 44,177,704 is its ResNet-101
# with 32 groups of width 4. Form B only cuts form C's weights into pieces (paper, section 3.3 and figure 3).
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("resnext_b_50", 25_028_904),
        ("resnext_b_101", 44_177_704),
        ("resnext_c_50", 25_028_904),
        ("resnext_c_101", 44_177_704),
    ],
)
def test_parameters(name, parameters):
    with tf.Graph().as_default():
        NETWORKS[name].architecture(Layers(training=False), tf.zeros([1, 32, 32, 3]), 1000)
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == parameters
        assert all(variable.op.name.startswith(f"{name}/") for variable in tf.global_variables())


def test_variables_of_the_forms():
    found = {}
    for form in FORMS:
        with tf.Graph().as_default():
            build(form, (1, 32, 32, 3))
            found[form] = shapes()
    unit = "short/block1/unit_1/bottleneck/conv2"
    assert found["c"][f"{unit}/weights"] == [3, 3, 4, 128]
    assert [found["b"][f"{unit}/path_{path}/weights"] for path in range(1, 33)] == [[3, 3, 4, 4]] * 32
    assert found["c"]["short/block4/unit_1/bottleneck/conv2/weights"] == [3, 3, 32, 1024]
    same = {name for name in found["c"] if not name.endswith("conv2/weights")}
    assert same == {name for name in found["b"] if "path_" not in name}


def grouped_by_numpy(x, kernel, stride):
    """The 3x3 convolution in 32 groups, pixel by pixel."""
    x = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    height, width = (-(-(length - 2) // stride) for length in x.shape[1:3])
    result = np.zeros((x.shape[0], height, width, kernel.shape[3]))
    for group, channels in enumerate(np.split(np.arange(x.shape[3]), 32)):
        out = slice(group * kernel.shape[3] // 32, (group + 1) * kernel.shape[3] // 32)
        for row in range(3):
            for column in range(3):
                seen = x[:, row : row + height * stride : stride, column : column + width * stride : stride, channels]
                result[..., out] += seen[:, :height, :width] @ kernel[row, column, :, out]
    return result


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_both_forms_are_the_grouped_convolution(training, stride):
    random = np.random.default_rng(3)
    x, kernel = random.normal(size=(2, 7, 6, 64)), random.normal(size=(3, 3, 2, 64))
    with tf.Graph().as_default():
        net = Layers(training=training, style=Style(batch_norm=BatchNorm(epsilon=1e-3)))
        images = tf.constant(x, tf.float32)
        with tf.variable_scope("c"):
            c = form_c(net, images, Unit(128, stride))
        with tf.variable_scope("b"):
            b = form_b(net, images, Unit(128, stride))
        with tf.Session() as session:
            (whole,) = (variable for variable in tf.global_variables() if variable.op.name == "c/conv2/weights")
            session.run(whole.initializer, {whole.initializer.inputs[1]: kernel})
            for path, part in enumerate(np.split(kernel, 32, axis=3), start=1):
                (piece,) = (v for v in tf.global_variables() if v.op.name == f"b/conv2/path_{path}/weights")
                session.run(piece.initializer, {piece.initializer.inputs[1]: part})
            for variable in tf.global_variables():
                if "BatchNorm" in variable.op.name:
                    session.run(variable.initializer)
            results = session.run([b, c])
    expected = grouped_by_numpy(x, kernel, stride)
    mean, variance = (expected.mean((0, 1, 2)), expected.var((0, 1, 2))) if training else (0, 1)
    expected = np.maximum((expected - mean) / np.sqrt(variance + 1e-3), 0)
    for result in results:
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_variable_learns(form):
    with tf.Graph().as_default():
        _, logits = build(form, (4, 32, 32, 3), training=True)
        loss = tf.losses.sparse_softmax_cross_entropy([0, 1, 2, 3], logits)
        gradients = tf.gradients(loss, tf.trainable_variables())
        assert None not in gradients
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2 * sum("gamma" in name for name in shapes())
        values = run(gradients, (4, 32, 32, 3))
    assert all(np.isfinite(value).all() and np.abs(value).max() > 0 for value in values)


def test_one_operation_where_no_gradient_is_taken_on_a_cpu():
    def convolutions(**settings):
        with tf.Graph().as_default() as graph:
            shape = (1, 3, 32, 32) if settings.get("data_format") == "NCHW" else (1, 32, 32, 3)
            build("c", shape, **settings)
            return sum(op.type == "Conv2D" for op in graph.get_operations())

    # The stem, four units of three convolutions and a shortcut, the logits.
    assert convolutions() == convolutions(training=True, data_format="NCHW") == 1 + 4 * 4 + 1
    assert convolutions(training=True) == 1 + 4 * (3 + 32) + 1


@pytest.mark.parametrize("training", [False, True])
def test_dense_features_contain_the_strided_ones(training):
    with tf.Graph().as_default():
        images = tf.constant(np.random.default_rng(1).uniform(-1, 1, (1, 65, 65, 3)), tf.float32)
        net = Layers(training=training)
        arguments = {"name": "short", "units": (1, 1, 2, 1), "grouped": form_c, "global_pool": False}
        strided = resnext(net, images, None, **arguments)
        tf.get_variable_scope().reuse_variables()
        dense = resnext(net, images, None, output_stride=8, **arguments)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            expected, found = session.run([strided, dense])
    assert expected.shape == (1, 3, 3, 2048)
    assert found.shape == (1, 9, 9, 2048)
    if not training:  # a batch's own statistics depend on the number of its pixels
        np.testing.assert_allclose(found[:, ::4, ::4], expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_wrong_output_stride():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="output_stride=3: expected 4, 8, 16, 32 or None"):
        build("c", (1, 64, 64, 3), output_stride=3)


def test_strides_stand_in_the_first_units():
    with tf.Graph().as_default():
        net, _ = build("c", (1, 224, 224, 3), units=(1, 2, 1, 1))
        unit = "short/block2/unit_1/bottleneck"
        names = ["short/block1", f"{unit}/conv1", f"{unit}/conv2", unit, "short/block2", "short/block4"]
        assert [net.end_points[name].shape.as_list()[1] for name in names] == [56, 56, 28, 28, 28, 7]


@pytest.mark.parametrize("form", sorted(FORMS))
def test_features_and_unknown_sizes(form):
    assert {network.smallest for network in NETWORKS.values()} == {1}
    with tf.Graph().as_default():
        _, features = build(form, (None, None, None, 3), None)
        assert features.shape.as_list() == [None, 1, 1, 2048]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for size in (1, 37):
                assert session.run(features, {"images:0": np.ones((1, size, size, 3))}).shape == (1, 1, 1, 2048)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_channels_first_and_logits_pattern(form):
    with tf.Graph().as_default():
        build(form, (2, 64, 96, 3), training=True)
        ten = shapes()
    with tf.Graph().as_default():
        net, logits = build(form, (2, 3, 64, 96), 7, training=True, data_format="NCHW")
        seven = shapes()
        assert net.end_points["short/block4"].shape.as_list() == [2, 2048, 2, 3]
        assert logits.shape.as_list() == [2, 7]
    differing = {name for name in ten if ten[name] != seven[name]}
    assert list(ten) == list(seven)
    assert differing == {"short/logits/weights", "short/logits/biases"}
    assert differing == {name for name in ten if re.search(NETWORKS["resnext_c_50"].logits_pattern, name)}
