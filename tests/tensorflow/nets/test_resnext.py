"""ResNeXt: parameters, the two forms against each other, gradients, sizes, axes. Most tests build short ones."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import (
    built,
    check_every_variable_learns,
    check_features_of_unknown_sizes,
    differing_shapes,
    shapes,
    shapes_of,
    strided_and_dense,
)

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers, Style
from moxing.tensorflow.nets.resnet_v1 import Unit
from moxing.tensorflow.nets.resnext import NETWORKS, form_b, form_c, resnext

FORMS = {"b": form_b, "c": form_c}


def build(form, shape, num_classes=10, units=(1, 1, 1, 1), **options):
    short = partial(resnext, name="short", units=units, grouped=FORMS[form])
    return built(short, shape, num_classes, **options)


# torchvision states these for 1,000 classes (`num_params` of ResNeXt50_32X4D_Weights), and 44,177,704 is its ResNet-101
# with 32 groups of width 4. Form B only cuts form C's weights into pieces (paper, section 3.3 and figure 3).
@pytest.mark.slow
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
    found = {form: shapes_of(build, form, (1, 32, 32, 3)) for form in FORMS}
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
    check_every_variable_learns(partial(build, form), (4, 32, 32, 3))


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
    arguments = {"name": "short", "units": (1, 1, 2, 1), "grouped": form_c, "global_pool": False}
    features = partial(resnext, Layers(training=training), num_classes=None, **arguments)
    strided, dense = strided_and_dense(features, output_stride=8)
    assert strided.shape == (1, 3, 3, 2048)
    if not training:  # a batch's own statistics depend on the number of its pixels
        np.testing.assert_allclose(dense, strided, rtol=1e-3, atol=1e-3 * np.abs(strided).max())


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
    check_features_of_unknown_sizes(partial(build, form), sizes=(1, 37))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_channels_first_and_logits_pattern(form):
    ten = shapes_of(build, form, (2, 64, 96, 3), training=True)
    with tf.Graph().as_default():
        net, logits = build(form, (2, 3, 64, 96), 7, training=True, data_format="NCHW")
        seven = shapes()
        assert net.end_points["short/block4"].shape.as_list() == [2, 2048, 2, 3]
        assert logits.shape.as_list() == [2, 7]
    differing = differing_shapes(ten, seven, NETWORKS["resnext_c_50"].logits_pattern)
    assert differing == {"short/logits/weights", "short/logits/biases"}
