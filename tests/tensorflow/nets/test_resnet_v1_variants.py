"""ResNet-50 for large batches, and ours: how they begin, where their strides are, options and their errors."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built, check_features_of_unknown_sizes, differing_shapes, shapes, shapes_of

from moxing.tensorflow.nets.resnet_v1_variants import NETWORKS


def build(name, shape, num_classes=10, **options):
    return built(NETWORKS[name].architecture, shape, num_classes, **options)


def initial_values(pattern):
    variables = [variable for variable in tf.global_variables() if re.search(pattern, variable.op.name)]
    with tf.Session() as session:
        session.run([variable.initializer for variable in variables])
        return dict(zip([variable.op.name for variable in variables], session.run(variables), strict=True))


# 25,557,032 is what torchvision states for ResNet-50 with 1,000 classes (`num_params` of ResNet50_Weights); neither the
# place of the strides nor how the variables begin changes it.
@pytest.mark.parametrize(
    ("name", "options"), [("resnet_v1_50_8k", {}), ("resnet_v1_50_8k", {"official": True}), ("resnet_v1_50_mox", {})]
)
def test_parameters(name, options):
    with tf.Graph().as_default():
        build(name, (1, 64, 64, 3), 1000, **options)
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == 25_557_032
        assert all(variable.op.name.startswith(f"{name}/") for variable in tf.global_variables())
        assert NETWORKS[name].scope == name


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_units_begin_as_the_identity(name):
    with tf.Graph().as_default():
        net, _ = build(name, (2, 33, 33, 3), training=True)
        gammas = initial_values("gamma")
        # The last normalisation of every one of the 16 units, and no other.
        assert {key for key, value in gammas.items() if not value.any()} == {k for k in gammas if "/conv3/" in k}
        assert sum("/conv3/" in key for key in gammas) == 16
        assert all((value == 1).all() for key, value in gammas.items() if "/conv3/" not in key)
        units = [net.end_points[f"{name}/block1/unit_{number}/bottleneck_v1"] for number in (1, 2)]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            images = np.random.default_rng(0).uniform(-1, 1, (2, 33, 33, 3))
            before, after = session.run(units, {"images:0": images})
        assert before.max() > 0
        np.testing.assert_array_equal(after, before)


def test_how_the_logits_begin():
    deviations = {}
    for name in NETWORKS:
        with tf.Graph().as_default():
            build(name, (1, 32, 32, 3))
            ((_, weights),) = initial_values("logits/weights").items()
            deviations[name] = weights.std()
    assert deviations["resnet_v1_50_8k"] == pytest.approx(0.01, rel=0.03)
    # Variance 2 / 2048, as the other weights.
    assert deviations["resnet_v1_50_mox"] == pytest.approx(np.sqrt(2 / 2048), rel=0.03)


@pytest.mark.parametrize(
    ("name", "options", "heights"),
    [
        ("resnet_v1_50_8k", {}, [28, 14, 7, 7]),
        ("resnet_v1_50_8k", {"official": True}, [56, 28, 14, 7]),
        ("resnet_v1_50_mox", {}, [56, 28, 14, 7]),
        ("resnet_v1_50_mox", {"output_stride": 8}, [56, 28, 28, 28]),
    ],
)
def test_where_the_strides_are(name, options, heights):
    with tf.Graph().as_default():
        net, _ = build(name, (1, 224, 224, 3), **options)
        assert [net.end_points[f"{name}/block{n}"].shape.as_list()[1] for n in (1, 2, 3, 4)] == heights
        if heights == [56, 28, 14, 7]:
            unit = f"{name}/block2/unit_1/bottleneck_v1"
            assert [net.end_points[f"{unit}/conv{n}"].shape.as_list()[1] for n in (1, 2, 3)] == [56, 28, 28]


@pytest.mark.parametrize(
    ("params", "variance"),
    [
        (None, 2 / 256),
        ({}, 2 / 256),
        ({"factor": 1}, 1 / 256),
        ({"mode": "FAN_OUT"}, 2 / 64),
        ({"factor": 3.0, "mode": "FAN_AVG"}, 3 / 160),
    ],
)
def test_weights_initializer_params(params, variance):
    with tf.Graph().as_default():
        build("resnet_v1_50_8k", (1, 32, 32, 3), weights_initializer_params=params)
        values = initial_values("block1/unit_[23]/bottleneck_v1/conv1/weights|logits/weights")
    for name, value in values.items():
        expected = 0.01**2 if "logits" in name else variance
        assert value.var() == pytest.approx(expected, rel=0.06), name


@pytest.mark.parametrize(
    "params",
    [
        {"factor": 0},
        {"factor": -1.0},
        {"factor": "2"},
        {"factor": True},
        {"factor": float("nan")},
        {"mode": "FAN"},
        {"mode": None},
        {"mode": ["FAN_IN"]},
        {"uniform": True},
        [2.0, "FAN_IN"],
        2.0,
    ],
)
def test_wrong_weights_initializer_params(params):
    expected = re.escape(f"weights_initializer_params={params!r}: expected a dict with factor")
    with tf.Graph().as_default(), pytest.raises(ValueError, match=expected):
        build("resnet_v1_50_8k", (1, 32, 32, 3), weights_initializer_params=params)


@pytest.mark.parametrize("official", [1, "true", None])
def test_wrong_official(official):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=f"official={official!r}: expected True or False"):
        build("resnet_v1_50_8k", (1, 32, 32, 3), official=official)


def test_options_of_one_are_no_options_of_the_other():
    with tf.Graph().as_default(), pytest.raises(TypeError, match="official"):
        build("resnet_v1_50_mox", (1, 32, 32, 3), official=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_features_and_unknown_sizes(name):
    assert NETWORKS[name].smallest == 1
    check_features_of_unknown_sizes(partial(build, name), sizes=(1, 19))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_channels_first_and_logits_pattern(name):
    ten = shapes_of(build, name, (2, 64, 96, 3), training=True)
    with tf.Graph().as_default():
        net, logits = build(name, (2, 3, 64, 96), 7, training=True, data_format="NCHW")
        seven = shapes()
        assert net.end_points[f"{name}/block4"].shape.as_list() == [2, 2048, 2, 3]
        assert logits.shape.as_list() == [2, 7]
    differing = differing_shapes(ten, seven, NETWORKS[name].logits_pattern)
    assert differing == {f"{name}/logits/weights", f"{name}/logits/biases"}
