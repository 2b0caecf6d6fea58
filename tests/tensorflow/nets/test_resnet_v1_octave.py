"""Octave ResNet: the convolution against NumPy, parameters, sizes, axes, training."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built, check_every_variable_learns, differing_shapes, shapes, shapes_of

from moxing.tensorflow.nets.parts.layers import Layers, Style
from moxing.tensorflow.nets.resnet_v1_octave import NETWORKS, Octave, octave_conv

NAME = "resnet_v1_50_oct"


def build(shape, num_classes=10, **options):
    return built(NETWORKS[NAME].architecture, shape, num_classes, **options)


def end_shape(net, name):
    return net.end_points[f"{NAME}/{name}"].shape.as_list()


def halved(x):
    """The means of 2x2 pixels, of those that there are."""
    rows, columns = (-(-length // 2) for length in x.shape[1:3])
    means = [
        [x[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].mean(axis=(1, 2)) for column in range(columns)]
        for row in range(rows)
    ]
    return np.array(means).transpose(2, 0, 1, 3)


def repeated(x, height, width):
    return x.repeat(2, axis=1).repeat(2, axis=2)[:, :height, :width]


@pytest.mark.parametrize(("height", "width"), [(6, 8), (5, 7), (1, 2)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("known", [True, False])
def test_octave_convolution(height, width, stride, known):
    random = np.random.default_rng(0)
    high = random.normal(size=(2, height, width, 6)).astype(np.float32)
    low = random.normal(size=(2, -(-height // 2), -(-width // 2), 2)).astype(np.float32)
    with tf.Graph().as_default():
        inputs = [tf.placeholder(tf.float32, x.shape if known else (None, None, None, x.shape[3])) for x in (high, low)]
        net = Layers(training=False, style=Style(initializer=tf.random_normal_initializer()))
        x = octave_conv(net.styled(activation=None), Octave(*inputs), (4, 4), 1, stride, scope="conv")
        weights = [v for v in tf.trainable_variables() if v.op.name.endswith("weights")]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = session.run(x, dict(zip(inputs, (high, low), strict=True)))
            kernels = {v.op.name.split("/")[1]: session.run(v)[0, 0] for v in weights}
    if stride == 2:
        high, from_low, low = halved(high), low @ kernels["low_to_high"], halved(low)
    else:
        from_low = repeated(low @ kernels["low_to_high"], height, width)
    expected_high = high @ kernels["high_to_high"] + from_low
    expected_low = halved(high) @ kernels["high_to_low"] + low @ kernels["low_to_low"]
    np.testing.assert_allclose(found.high, expected_high, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.low, expected_low, rtol=1e-4, atol=1e-4)


def test_from_one_map_and_to_one_map():
    with tf.Graph().as_default():
        net = Layers(training=False)
        both = octave_conv(net, Octave(tf.zeros([1, 8, 8, 4]), None), (6, 2), 3, scope="first")
        one = octave_conv(net, both, (8, 0), 3, 2, scope="last")
        assert (both.high.shape.as_list(), both.low.shape.as_list()) == ([1, 8, 8, 6], [1, 4, 4, 2])
        assert one.high.shape.as_list() == [1, 4, 4, 8]
        assert one.low is None
        kernels = {name: shape for name, shape in shapes().items() if name.endswith("weights")}
    assert kernels == {
        "first/high_to_high/weights": [3, 3, 4, 6],
        "first/high_to_low/weights": [3, 3, 4, 2],
        "last/high_to_high/weights": [3, 3, 6, 8],
        "last/low_to_high/weights": [3, 3, 2, 8],
    }


# The paper states 25.6 million for every alpha: those of ResNet-50, 25,557,032 with 1,000 classes by torchvision.
@pytest.mark.parametrize(
    "alpha", [0.25, pytest.param(0.5, marks=pytest.mark.slow), pytest.param(0.0, marks=pytest.mark.slow)]
)
def test_parameters(alpha):
    with tf.Graph().as_default():
        net, _ = build((1, 224, 224, 3), 1000, alpha=alpha)
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == 25_557_032
        assert all(variable.op.name.startswith(f"{NETWORKS[NAME].scope}/") for variable in tf.global_variables())
        low = int(256 * alpha)
        if alpha:
            assert end_shape(net, "block1/high") == [1, 56, 56, 256 - low]
            assert end_shape(net, "block1/low") == [1, 28, 28, low]
            assert end_shape(net, "block3/low") == [1, 7, 7, 4 * low]
        else:
            assert end_shape(net, "block1") == [1, 56, 56, 256]
        assert end_shape(net, "block4") == [1, 7, 7, 2048]


@pytest.mark.parametrize("alpha", [-0.1, 1, 1.5, "0.25", None, float("nan")])
def test_wrong_alpha(alpha):
    message = re.escape(f"alpha={alpha!r}: expected a number from 0 to less than 1")
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        build((1, 32, 32, 3), alpha=alpha)


@pytest.mark.slow
def test_odd_and_unknown_sizes():
    assert NETWORKS[NAME].smallest == 1
    with tf.Graph().as_default():
        net, features = build((None, None, None, 3), None)
        assert features is net.end_points["global_pool"]
        assert features.shape.as_list() == [None, 1, 1, 2048]
        names = [f"{NAME}/block2/high", f"{NAME}/block2/low", f"{NAME}/block4"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for height, width in ((1, 1), (75, 33), (64, 99)):
                images = np.ones((1, height, width, 3))
                maps = session.run([net.end_points[name] for name in names], {"images:0": images})
                for values, reduction in zip(maps, (8, 16, 32), strict=True):
                    assert values.shape[1:3] == (-(-height // reduction), -(-width // reduction))


def test_logits_of_every_place():
    with tf.Graph().as_default():
        assert build((2, 96, 64, 3), global_pool=False)[1].shape.as_list() == [2, 3, 2, 10]
    with tf.Graph().as_default():
        assert build((2, 96, 64, 3), spatial_squeeze=False)[1].shape.as_list() == [2, 1, 1, 10]


def test_channels_first_and_logits_pattern():
    ten = shapes_of(build, (2, 75, 96, 3), training=True)
    with tf.Graph().as_default():
        net, logits = build((2, 3, 75, 96), 7, training=True, data_format="NCHW")
        seven = shapes()
        assert end_shape(net, "block1/high") == [2, 192, 19, 24]
        assert end_shape(net, "block1/low") == [2, 64, 10, 12]
        assert end_shape(net, "block4") == [2, 2048, 3, 3]
        assert logits.shape.as_list() == [2, 7]
    differing = differing_shapes(ten, seven, NETWORKS[NAME].logits_pattern)
    assert differing == {f"{NAME}/logits/weights", f"{NAME}/logits/biases"}


def test_every_variable_learns():
    check_every_variable_learns(build, (4, 64, 64, 3))
