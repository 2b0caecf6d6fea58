"""The layers of a network, counted by hand."""

from __future__ import annotations

import json
import math

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.figures import FILE
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.parts.summary import LayerRow, default_classes, layer_rows
from moxing.tensorflow.network_registry import NetworkKeys, network


def test_lenet_counted_by_hand():
    rows = layer_rows(NetworkKeys.LENET)
    pools = [row.name for row in rows if not row.parameters]
    assert len(set(pools)) == 2 and all(name.startswith("LeNet/") for name in pools)
    assert rows == [
        LayerRow("LeNet/conv1", ["conv 5x5"], [28, 28, 32], 5 * 5 * 1 * 32 + 32, 28 * 28 * 32 * 5 * 5),
        LayerRow(pools[0], ["max pool 2x2/2"], [14, 14, 32]),
        LayerRow("LeNet/conv2", ["conv 5x5"], [14, 14, 64], 5 * 5 * 32 * 64 + 64, 14 * 14 * 64 * 5 * 5 * 32),
        LayerRow(pools[1], ["max pool 2x2/2"], [7, 7, 64]),
        LayerRow("LeNet/fc3", ["dense"], [1024], 7 * 7 * 64 * 1024 + 1024, 7 * 7 * 64 * 1024),
        LayerRow("LeNet/fc4", ["dense"], [10], 1024 * 10 + 10, 1024 * 10),
    ]
    assert sum(row.parameters for row in rows) == 3_274_634
    assert sum(row.multiply_adds for row in rows) == 13_883_904


def test_other_classes_and_sizes():
    rows = layer_rows(NetworkKeys.LENET, num_classes=3, image_size=9)
    assert [row.output for row in rows] == [[9, 9, 32], [4, 4, 32], [4, 4, 64], [2, 2, 64], [1024], [3]]
    assert [row.parameters for row in rows][-2:] == [2 * 2 * 64 * 1024 + 1024, 1024 * 3 + 3]
    assert rows[0].multiply_adds == 9 * 9 * 32 * 25


def test_normalised_layers_are_one_row():
    rows = {row.name: row for row in layer_rows(NetworkKeys.RESNET_V1_20, num_classes=10, image_size=32)}
    first = rows["resnet_v1_20/conv1"]
    # Weights, gamma and beta; the averages are not trained.
    assert (first.kinds, first.output, first.parameters) == (["conv 3x3"], [32, 32, 16], 3 * 3 * 3 * 16 + 2 * 16)
    assert first.multiply_adds == 32 * 32 * 16 * 27
    assert not any(name.endswith("BatchNorm") for name in rows)


def test_depthwise_convolutions_multiply_every_channel_by_itself():
    rows = {row.name: row for row in layer_rows(NetworkKeys.MOBILENET_V1_025, image_size=32)}
    depthwise, pointwise = (rows[f"MobilenetV1/Conv2d_2_{kind}"] for kind in ("depthwise", "pointwise"))
    assert (depthwise.kinds, depthwise.output) == (["depthwise 3x3/2"], [8, 8, 16])
    assert (depthwise.parameters, depthwise.multiply_adds) == (9 * 16 + 2 * 16, 8 * 8 * 16 * 9)
    assert (pointwise.kinds, pointwise.multiply_adds) == (["conv 1x1"], 8 * 8 * 32 * 16)


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_groups_whether_they_are_one_operation_or_many(training):
    rows = {row.name: row for row in layer_rows(NetworkKeys.RESNEXT_C_50, image_size=32, training=training)}
    grouped = rows["resnext_c_50/block1/unit_1/bottleneck/conv2"]
    assert grouped == LayerRow(
        grouped.name, ["32 groups of conv 3x3"], [8, 8, 128], 3 * 3 * 4 * 128 + 2 * 128, 8 * 8 * 128 * 9 * 4
    )
    assert sum(row.parameters for row in rows.values()) == json.loads(FILE.read_text())["resnext_c_50"]["parameters"]


@pytest.mark.slow
def test_an_auxiliary_head_is_there_in_training():
    trained = layer_rows(NetworkKeys.INCEPTION_V3, image_size=75, training=True)
    assert any("AuxLogits" in row.name for row in trained)
    assert all(row.multiply_adds for row in trained if any(kind.startswith("conv") for kind in row.kinds))


def test_default_classes():
    for name, classes in (
        ("lenet", 10),
        ("resnet_v1_20", 10),
        ("vgg_16", 1000),
        ("inception_v1", 1001),
        ("pvanet", 1000),
    ):
        assert default_classes(network(NetworkKeys(name))) == classes


@pytest.mark.parametrize("name", ["lenet", "alexnet_v2", "vgg_16_bn", "resnet_v1_20"])
def test_no_parameter_is_forgotten(name):
    found = network(NetworkKeys(name))
    size = max(found.smallest, 32)
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [1, size, size, found.channels])
        found.architecture(Layers(training=True), images, 7)
        expected = sum(math.prod(variable.shape.as_list()) for variable in tf.trainable_variables())
    rows = layer_rows(name, num_classes=7, image_size=size, training=True)
    assert sum(row.parameters for row in rows) == expected
