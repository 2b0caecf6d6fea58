"""Xception: there is no golden, so the parameters are counted by hand and the paddings and activations looked at."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built_with_shapes, channels_first, differing_shapes, shapes_of

from moxing.tensorflow.nets.parts.layers import HE_INITIALIZER, Layers
from moxing.tensorflow.nets.xception import NETWORKS, Block, xception

#: An Xception of the same form, small enough to run.
TINY = [
    Block("entry_flow/block1", (8, 8, 8), stride=2),
    Block("entry_flow/block2", (12, 12, 12), stride=2),
    Block("entry_flow/block3", (16, 16, 16), stride=2),
    Block("middle_flow/block1", (16, 16, 16), shortcut="sum", units=2),
    Block("exit_flow/block1", (16, 20, 20), stride=2),
    Block("exit_flow/block2", (24, 24, 32), shortcut="none"),
]


def build(name, shape, num_classes=10, **options):
    return built_with_shapes(NETWORKS[name].architecture, shape, num_classes, **options)


def tiny(shape: list[int | None], num_classes: int | None = 5, **options):
    net = Layers(training=options.pop("training", False), data_format=options.pop("data_format", "NHWC"))
    images = tf.placeholder(tf.float32, shape)
    return net, images, xception(net, images, num_classes, name="x", blocks=TINY, **options)


def separable(inputs: int, outputs: int) -> int:
    """3 x 3 weights a channel, 1 x 1 weights, and two numbers a channel for the normalisation behind each."""
    return 9 * inputs + 2 * inputs + inputs * outputs + 2 * outputs


def shortcut(inputs: int, outputs: int) -> int:
    return inputs * outputs + 2 * outputs


def entry(inputs: int, outputs: int) -> int:
    return separable(inputs, outputs) + 2 * separable(outputs, outputs) + shortcut(inputs, outputs)


STEM = (9 * 3 * 32 + 2 * 32) + (9 * 32 * 64 + 2 * 64)
MIDDLE_UNIT = 3 * separable(728, 728)
EXIT = (
    separable(728, 728) + separable(728, 1024) + separable(1024, 1024) + shortcut(728, 1024)
    + separable(1024, 1536) + separable(1536, 1536) + separable(1536, 2048)
)  # fmt: skip
LOGITS = 2048 * 1000 + 1000


ENTRY = entry(64, 128) + entry(128, 256) + entry(256, 728)
DEEP_ENTRY = entry(64, 128) + entry(128, 256) + entry(256, 256) + entry(256, 728) + entry(728, 728)


# Figure 4 of the DeepLab v3+ paper, added up. The millions are what timm (results/results-imagenet.csv) counts in
# its conversions of DeepLab's checkpoints, the only published figures we know. Chollet's Xception has 22.86 million.
@pytest.mark.parametrize(
    ("name", "counted", "millions"),
    [
        ("xception_41", STEM + ENTRY + 8 * MIDDLE_UNIT + EXIT + LOGITS, 26.97),
        ("xception_65", STEM + ENTRY + 16 * MIDDLE_UNIT + EXIT + LOGITS, 39.92),
        ("xception_71", STEM + DEEP_ENTRY + 16 * MIDDLE_UNIT + EXIT + LOGITS, 42.34),
    ],
)
def test_as_many_parameters_as_the_table_has(name, counted, millions):
    with tf.Graph().as_default():
        build(name, [1, 32, 32, 3], 1000)
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == counted
        assert round(counted / 1e6, 2) == millions


def test_variables_of_the_checkpoints():
    with tf.Graph().as_default():
        variables = build("xception_65", [1, 32, 32, 3], 1001)[2]
    expected = {
        "entry_flow/conv1_1/weights": [3, 3, 3, 32],
        "entry_flow/conv1_2/BatchNorm/gamma": [64],
        "entry_flow/block1/unit_1/xception_module/separable_conv1_depthwise/depthwise_weights": [3, 3, 64, 1],
        "entry_flow/block1/unit_1/xception_module/separable_conv1_depthwise/BatchNorm/beta": [64],
        "entry_flow/block1/unit_1/xception_module/separable_conv1_pointwise/weights": [1, 1, 64, 128],
        "entry_flow/block3/unit_1/xception_module/shortcut/weights": [1, 1, 256, 728],
        "entry_flow/block3/unit_1/xception_module/shortcut/BatchNorm/moving_mean": [728],
        "middle_flow/block1/unit_16/xception_module/separable_conv3_pointwise/BatchNorm/moving_variance": [728],
        "exit_flow/block1/unit_1/xception_module/separable_conv2_pointwise/weights": [1, 1, 728, 1024],
        "exit_flow/block2/unit_1/xception_module/separable_conv3_pointwise/weights": [1, 1, 1536, 2048],
        "logits/weights": [1, 1, 2048, 1001],
        "logits/biases": [1001],
    }
    assert {name: variables.get(f"xception_65/{name}") for name in expected} == expected
    # 2 convolutions, 21 units of 6, 4 shortcuts, with 5 variables each, and 2 of the logits.
    assert len(variables) == 5 * (2 + 21 * 6 + 4) + 2 and all(name.startswith("xception_65/") for name in variables)
    assert not any("middle_flow" in name and "shortcut" in name for name in variables)
    assert not any("exit_flow/block2" in name and "shortcut" in name for name in variables)


def test_the_pattern_is_for_what_depends_on_the_classes_training_or_not():
    small = partial(build, "xception_41", [2, 32, 32, 3], blocks=TINY)
    ten, seven = shapes_of(small, 10, training=False), shapes_of(small, 7, training=True)
    changed = differing_shapes(ten, seven, NETWORKS["xception_41"].logits_pattern)
    assert changed == {"xception_41/logits/weights", "xception_41/logits/biases"}


def test_the_published_size_and_end_points():
    with tf.Graph().as_default():
        net, logits, _ = build("xception_71", [1, 299, 299, 3])
        sides = {
            "entry_flow/conv1_1": 150,
            "entry_flow/block1": 75,
            "entry_flow/block2": 75,
            "entry_flow/block3": 38,
            "entry_flow/block4": 38,
            "entry_flow/block5": 19,
            "middle_flow/block1": 19,
            "exit_flow/block1": 10,
            "exit_flow/block2": 10,
        }
        for name, side in sides.items():
            assert net.end_points[f"xception_71/{name}"].shape.as_list()[1:3] == [side, side], name
        assert "xception_71/middle_flow/block1/unit_16/xception_module/separable_conv2_depthwise" in net.end_points
        assert net.end_points["global_pool"].shape == [1, 1, 1, 2048]
        assert net.end_points["xception_71/logits"].shape == [1, 1, 1, 10]
        assert logits.shape == [1, 10] == net.end_points["predictions"].shape


def test_training_updates_every_average_and_decays_all_but_depthwise_weights():
    with tf.Graph().as_default():
        build("xception_41", [2, 32, 32, 3], training=True)
        # 2, 13 units of 3 pairs, 4 shortcuts.
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2 * (2 + 13 * 6 + 4)
        decayed = [loss.op.name for loss in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)]
        assert len(decayed) == 2 + 13 * 3 + 4 + 1 and not any("depthwise" in name for name in decayed)


def test_features_without_classes():
    with tf.Graph().as_default():
        net, _, features = tiny([2, 64, 96, 3], None)
        assert features.shape == [2, 1, 1, 32] and features is net.end_points["global_pool"]
        assert "predictions" not in net.end_points
    with tf.Graph().as_default():
        assert tiny([2, 64, 96, 3], None, global_pool=False)[2].shape == [2, 2, 3, 32]


@pytest.mark.parametrize(
    ("side", "training"), [((1, 1), True), ((1, 1), False), ((2, 2), False), ((33, 50), True), ((None, None), True)]
)
def test_any_size_gives_one_row_of_logits(side, training):
    with tf.Graph().as_default(), tf.Session() as session:
        _, images, logits = tiny([None, *side, 3], training=training)
        assert logits.shape.as_list() == [None, 5]
        session.run(tf.global_variables_initializer())
        shape = (2, *(length or 41 for length in side), 3)
        assert np.isfinite(session.run(logits, {images: np.ones(shape, "float32")})).all()


@pytest.mark.slow
def test_nchw_has_the_same_variables():
    net = channels_first(partial(build, "xception_41"), (2, 64, 96, 3))
    assert net.end_points["xception_41/exit_flow/block2"].shape == [2, 2048, 2, 3]
    with tf.Graph().as_default():
        maps = tiny([2, 3, 64, 96], data_format="NCHW", global_pool=False, output_stride=8)[2]
        assert maps.shape == [2, 5, 8, 12]


# Even and odd sizes: the padding is fixed, so both look at the same pixels.
@pytest.mark.parametrize(("side", "output_stride"), [(64, 8), (65, 16), (64, 2)])
def test_output_stride_gives_the_same_features_more_densely(side, output_stride):
    pixels = np.random.default_rng(3).uniform(-1, 1, (1, side, side, 3)).astype("float32")
    with tf.Graph().as_default(), tf.variable_scope("", reuse=tf.AUTO_REUSE), tf.Session() as session:
        outputs = [
            tiny([1, side, side, 3], global_pool=False, output_stride=stride)[1:] for stride in (None, output_stride)
        ]
        session.run(tf.global_variables_initializer())
        strided, dense = (session.run(y, {images: pixels}) for images, y in outputs)
        assert dense.shape[1] == -(-side // output_stride) and strided.shape[1] == -(-side // 32)
        step = 32 // output_stride
        assert np.abs(strided).max() > 0
        np.testing.assert_allclose(dense[:, ::step, ::step], strided, atol=1e-4 * np.abs(strided).max())


def test_multi_grid_moves_the_taps_of_the_last_block_only():
    pixels = np.random.default_rng(4).uniform(-1, 1, (1, 64, 64, 3)).astype("float32")
    names = [
        "x/exit_flow/block1",
        *(f"x/exit_flow/block2/unit_1/xception_module/separable_conv{i}_depthwise" for i in (1, 2)),
    ]
    with tf.Graph().as_default(), tf.variable_scope("", reuse=tf.AUTO_REUSE), tf.Session() as session:
        found = []
        for grid in ((1, 1, 1), (1, 2, 1)):
            net, images, _ = tiny([1, 64, 64, 3], output_stride=8, multi_grid=grid)
            found.append((images, [net.end_points[name] for name in names]))
        session.run(tf.global_variables_initializer())
        plain, spread = (session.run(ends, {images: pixels}) for images, ends in found)
        scales = [np.abs(x).max() for x in plain]
        assert [np.allclose(a, b, atol=1e-4 * s) for a, b, s in zip(plain, spread, scales, strict=True)] == [
            True,
            True,
            False,
        ]


def test_activations_stand_before_the_convolutions_and_in_the_last_block_behind_them(monkeypatch):
    monkeypatch.setattr("moxing.tensorflow.nets.xception.INITIALIZER", HE_INITIALIZER)
    pixels = np.random.default_rng(5).uniform(-1, 1, (1, 64, 64, 3)).astype("float32")
    with tf.Graph().as_default(), tf.Session() as session:
        # By chance all ten logits may be positive.
        tf.set_random_seed(1)
        net, images, _ = tiny([1, 64, 64, 3], output_stride=2)
        session.run(tf.global_variables_initializer())
        values = session.run({k: v for k, v in net.end_points.items() if v.shape.rank == 4}, {images: pixels})
    some_negative = {name for name, value in values.items() if value.min() < 0}
    behind = {"x/entry_flow/conv1_1", "x/entry_flow/conv1_2", "global_pool"} | {
        x for x in values if "exit_flow/block2" in x
    }
    assert some_negative == set(values) - behind


def test_the_last_block_sees_what_is_negative():
    with tf.Graph().as_default() as graph:
        net = tiny([1, 64, 64, 3])[0]
        inputs = {
            name: next(
                op.inputs[0]
                for op in graph.get_operations()
                if op.type == "DepthwiseConv2dNative" and f"{name}/unit_1/xception_module/separable_conv1" in op.name
            )
            for name in ("exit_flow/block1", "exit_flow/block2")
        }
        assert inputs["exit_flow/block1"].op.type == "Relu"
        assert inputs["exit_flow/block2"] is net.end_points["x/exit_flow/block1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output_stride": 6}, "output_stride=6: expected None or one of [2, 4, 8, 16, 32]."),
        ({"multi_grid": (1, 2)}, "multi_grid=(1, 2): expected three numbers of at least 1."),
        ({"multi_grid": (1, 0, 1)}, "multi_grid=(1, 0, 1): expected"),
        ({"dropout_keep_prob": 0}, "dropout_keep_prob=0: expected a number above 0 and at most 1"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=re.escape(message)):
        tiny([1, 32, 32, 3], **options)
