"""PVANet: what the authors' files say of it, sizes, options, and C.ReLU by itself.

Sources: `models/pvanet/imagenet/pva9.1_preAct_test.prototxt` of the authors' repository `sanghoon/pva-faster-rcnn`
(read in its fork `twmht/PVANet-FACE`): the layers, and in its first comment the multiplications of every block. Issue 1
of the authors' repository: the shape of fc6.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built as in_default_graph
from network_checks import check_too_small, differing_shapes, shapes

from moxing.tensorflow.nets import pvanet
from moxing.tensorflow.nets.parts.layers import Layers, Style
from moxing.tensorflow.nets.pvanet import (
    BATCH_NORM,
    NETWORKS,
    CReluBlock,
    InceptionBlock,
    c_relu,
    c_relu_block,
    inception_block,
)

NETWORK = NETWORKS["pvanet"]

#: The layers that a branch of an inception block begins with, which have the block's stride.
FIRST = ("0", "1_reduce", "2_reduce")


def build(shape=(2, 192, 192, 3), **options):
    return in_default_graph(NETWORK.architecture, shape, **options)


class Built(NamedTuple):
    """What tests ask about a network that was built: it takes seconds, so that they share it."""

    output: list[int | None]
    end_points: dict[str, list[int | None]]
    variables: dict[str, list[int]]
    trainable: list[str]
    updates: int
    losses: int
    random_operations: int


@cache
def built(*arguments, **options):
    with tf.Graph().as_default() as graph:
        net, output = build(*arguments, **options)
        return Built(
            output.shape.as_list(),
            {name: x.shape.as_list() for name, x in net.end_points.items()},
            shapes(),
            [variable.op.name for variable in tf.trainable_variables()],
            len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)),
            len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)),
            len([op for op in graph.get_operations() if op.type == "RandomUniform" and "dropout" in op.name]),
        )


def large():
    return built((1, 640, 640, 3), num_classes=1000)


def trained():
    return built((2, 192, 224, 3), training=True, weight_decay=0.1)


def smallest():
    return built((1, NETWORK.smallest, NETWORK.smallest, 3), num_classes=7, training=True)


# For an image of 640 x 640: millions of multiplications, height and width of the output, depth of the output.
BLOCKS = {
    "conv1_1": (240.84, 320, 32),
    "conv2_1": (283.44, 160, 64),
    "conv2_2": (250.68, 160, 64),
    "conv2_3": (250.68, 160, 64),
    "conv3_1": (283.44, 80, 128),
    "conv3_2": (250.68, 80, 128),
    "conv3_3": (250.68, 80, 128),
    "conv3_4": (250.68, 80, 128),
    "conv4_1": (395.47, 40, 256),
    "conv4_2": (328.29, 40, 256),
    "conv4_3": (328.29, 40, 256),
    "conv4_4": (328.29, 40, 256),
    "conv5_1": (229.38, 20, 384),
    "conv5_2": (167.12, 20, 384),
    "conv5_3": (167.12, 20, 384),
    "conv5_4": (167.12, 20, 384),
}


@pytest.mark.slow
def test_blocks_as_the_authors_count_them():
    variables, end_points = large().variables, large().end_points
    for block, (millions, length, depth) in BLOCKS.items():
        weights = [shape for name, shape in variables.items() if re.match(f"pvanet/{block}/.*weights", name)]
        multiplications = sum(np.prod(shape) for shape in weights) * length**2
        assert multiplications / 1e6 == pytest.approx(millions, abs=0.0051), block
        assert end_points[f"pvanet/{block}"] == [1, length, length, depth], block
    assert variables["pvanet/fc6/weights"] == [6, 6, 384, 4096]  # issue 1: 4096 x 13824
    assert variables["pvanet/fc7/weights"] == [1, 1, 4096, 4096]  # 16.78 millions


def c_relu_parameters(inputs, first, second, output, activated=False, projected=False):
    """Weights and biases of the convolutions, scale and shift in front of each (two for every channel of C.ReLU)."""
    count = (0 if activated else 2 * inputs) + inputs * first + first
    count += 2 * first + 9 * first * second + second
    count += 2 * 2 * second + 2 * second * output + output
    return count + (inputs * output + output if projected else 0)


def inception_parameters(inputs, single, double, triple, output, pooled=0, last=False):
    """Weights, scale and shift of the branches, scale and shift in front, weights and biases behind."""
    count = 2 * inputs + inputs * single + 2 * single
    count += inputs * double[0] + 9 * double[0] * double[1] + 2 * sum(double)
    count += inputs * triple[0] + 9 * triple[0] * triple[1] + 9 * triple[1] * triple[2] + 2 * sum(triple)
    count += inputs * pooled + 2 * pooled
    count += (single + double[-1] + triple[-1] + pooled) * output + (2 if last else 1) * output
    return count + (inputs * output + output if pooled else 0)


def test_parameters():
    expected = [
        7 * 7 * 3 * 16 + 2 * 32,
        c_relu_parameters(32, 24, 24, 64, activated=True, projected=True),
        2 * c_relu_parameters(64, 24, 24, 64),
        c_relu_parameters(64, 48, 48, 128, projected=True),
        3 * c_relu_parameters(128, 48, 48, 128),
        inception_parameters(128, 64, (48, 128), (24, 48, 48), 256, pooled=128),
        3 * inception_parameters(256, 64, (64, 128), (24, 48, 48), 256),
        inception_parameters(256, 64, (96, 192), (32, 64, 64), 384, pooled=128),
        2 * inception_parameters(384, 64, (96, 192), (32, 64, 64), 384),
        inception_parameters(384, 64, (96, 192), (32, 64, 64), 384, last=True),
        2 * 384,
        6 * 6 * 384 * 4096 + 3 * 4096,
        4096 * 4096 + 3 * 4096,
        4096 * 1000 + 1000,
    ]
    found = sum(np.prod(large().variables[name]) for name in large().trainable)
    assert found == sum(expected) == 80_427_000


def test_c_relu():
    """The authors' order of things: normalise, join with the negative, scale and shift, ReLU."""
    generator = np.random.default_rng(0)
    x = generator.normal(3, 2, [4, 5, 5, 3]).astype("float32")
    gamma, beta = generator.normal(size=[2, 6]).astype("float32")
    normal = (x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-5)
    expected = np.maximum(np.concatenate([normal, -normal], -1) * gamma + beta, 0)
    with tf.Graph().as_default(), tf.Session() as session:
        y = c_relu(Layers(training=True, style=Style(batch_norm=BATCH_NORM)), tf.constant(x))
        scale, shift = tf.trainable_variables()
        session.run(tf.global_variables_initializer())
        session.run([scale.assign(gamma), shift.assign(beta)])
        np.testing.assert_allclose(session.run(y), expected, atol=1e-4)


def convolution(x, weights, stride=1):
    """With as many zeros around the image as the kernel reaches over."""
    reach = weights.shape[0] // 2
    padded = np.pad(x, [(0, 0), (reach, reach), (reach, reach), (0, 0)])
    height, width = x.shape[1:3]
    taps = [
        padded[:, row : row + height, column : column + width] @ weights[row, column]
        for row in range(weights.shape[0])
        for column in range(weights.shape[1])
    ]
    return sum(taps)[:, ::stride, ::stride]


def activated(x):
    """Normalised with the moving averages of a new network, 0 and 1, and without what is negative."""
    return np.maximum(x / np.sqrt(1 + 1e-5), 0)


def run_block(function, x, block):
    """The output of a block, and its variables by their names."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(0)
        y = function(Layers(training=False, style=Style(batch_norm=BATCH_NORM)), tf.constant(x), block)
        session.run(tf.global_variables_initializer())
        return session.run([y, {variable.op.name: variable for variable in tf.global_variables()}])


@pytest.mark.parametrize(
    "block", [CReluBlock((4, 5, 6), stride=2), CReluBlock((4, 5, 8)), CReluBlock((4, 5, 8), activated=True)]
)
def test_c_relu_block(block):
    x = np.random.default_rng(0).normal(size=[2, 8, 8, 8]).astype("float32")
    got, values = run_block(c_relu_block, x, block)
    y = x if block.activated else activated(x)
    y = convolution(y, values["1/conv/weights"], block.stride) + 0.1
    y = convolution(activated(y), values["2/conv/weights"]) + 0.1
    y = convolution(activated(np.concatenate([y, -y], -1)), values["3/conv/weights"]) + 0.1
    shortcut = x if block.stride == 1 else convolution(x, values["proj/weights"], 2) + 0.1
    np.testing.assert_allclose(got, y + shortcut, atol=1e-4)


@pytest.mark.parametrize(
    "block",
    [
        InceptionBlock(((3,), (2, 4), (2, 3, 5)), 6, pooled=2),
        InceptionBlock(((3,), (2, 4), (2, 3, 5)), 8),
        InceptionBlock(((3,), (2, 4), (2, 3, 5)), 8, last=True),
    ],
)
def test_inception_block(block):
    x = np.random.default_rng(0).normal(size=[2, 8, 8, 8]).astype("float32")
    got, values = run_block(inception_block, x, block)
    stride = 2 if block.pooled else 1

    def branch(y, *names):
        for name in names:
            y = activated(convolution(y, values[f"incep/{name}/weights"], stride if name in FIRST else 1))
        return y

    y = activated(x)
    outputs = [branch(y, "0"), branch(y, "1_reduce", "1_0"), branch(y, "2_reduce", "2_0", "2_1")]
    shortcut = x
    if block.pooled:
        # Windows of 3 that begin at every second pixel; what reaches over the edge, Caffe cuts off.
        padded = np.pad(y, [(0, 0), (0, 1), (0, 1), (0, 0)], constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
        outputs.append(branch(windows.max((-2, -1)), "poolproj"))
        shortcut = convolution(x, values["proj/weights"], 2) + 0.1
    y = convolution(np.concatenate(outputs, -1), values["out/weights"])
    y = y / np.sqrt(1 + 1e-5) if block.last else y + 0.1
    np.testing.assert_allclose(got, y + shortcut, atol=1e-4)


@pytest.mark.slow
def test_training():
    # conv1_1 and conv2_1; six C.ReLU blocks of 3; two blocks with pooling of 8, five without of 7, the last one of 8;
    # last_bn, fc6, fc7.
    normalisations = (1 + 2) + 6 * 3 + (2 * 8 + 5 * 7 + 8) + 3
    assert trained().updates == 2 * normalisations
    assert trained().losses == len([name for name in trained().variables if name.endswith("/weights")])
    assert trained().random_operations == 2
    assert large().updates == large().random_operations == 0


@pytest.mark.slow
def test_only_the_last_layer_depends_on_the_classes():
    ten, seven = trained().variables, smallest().variables
    assert ten.keys() == large().variables.keys()
    assert differing_shapes(ten, seven, NETWORK.logits_pattern) == {"pvanet/fc8/weights", "pvanet/fc8/biases"}


def test_larger_images_are_pooled():
    assert trained().output == [2, 10]
    assert trained().end_points["pvanet/fc7"] == [2, 1, 2, 4096]
    assert trained().end_points["global_pool"] == [2, 1, 1, 4096]


@pytest.mark.slow
def test_smallest():
    assert smallest().output == [1, 7]
    assert "global_pool" not in smallest().end_points
    check_too_small(build, (1, NETWORK.smallest, NETWORK.smallest - 1, 3))


@pytest.mark.slow
def test_unknown_sizes_run():
    image = np.random.default_rng(0).uniform(-1, 1, [1, 170, 203, 3]).astype("float32")
    with tf.Graph().as_default(), tf.Session() as session:
        known = build((1, 170, 203, 3))[1]
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            unknown = build((None, None, None, 3))[1]
        assert unknown.shape.as_list() == [None, 10]
        first = tf.get_default_graph().get_operation_by_name("pvanet/conv1_1/conv/Conv2D")
        assert first.get_attr("explicit_paddings") == [0, 0, 3, 3, 3, 3, 0, 0]
        session.run(tf.global_variables_initializer())
        feed = {op.outputs[0]: image for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"}
        first, second = session.run([known, unknown], feed)
        assert first.shape == (1, 10)
        assert first.std() > 0
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_features():
    features = built(num_classes=None)
    assert features.output == features.end_points["pvanet/fc7"] == [2, 1, 1, 4096]
    assert features.variables.keys() == large().variables.keys() - {"pvanet/fc8/weights", "pvanet/fc8/biases"}


@pytest.mark.slow
def test_channels_first():
    first = built((2, 3, 192, 224), training=True, data_format="NCHW")
    assert first.output == [2, 10]
    assert first.variables == trained().variables
    assert first.end_points["pvanet/conv1_1"] == [2, 32, 96, 112]
    assert first.end_points["pvanet/conv5_4"] == [2, 384, 6, 7]


def test_dense_prediction():
    assert built((1, 224, 225, 3), spatial_squeeze=False).output == [1, 2, 3, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout_keep_prob": 0}, r"dropout_keep_prob=0: expected"),
        ({"global_pool": False}, r"global_pool=False gives a map of 2 x 2 logits"),
    ],
)
def test_bad_options(options, message, monkeypatch):
    monkeypatch.setattr(pvanet, "BLOCKS", {"conv5_1": CReluBlock((2, 2, 4), stride=8)})  # to be quick
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        build((1, 224, 224, 3), **options)
