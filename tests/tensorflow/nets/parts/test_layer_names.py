"""Names of variables and end points, and which variables decay."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.nets.nets_factory import get_model_fn
from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers, Style


def images(height, width, channels, batch=2):
    return np.random.default_rng(5).normal(size=(batch, height, width, channels)).astype("float32")


def losses(weight_decay, **style):
    """The decays of one layer of each kind, by the variable's name, beside what they should be."""
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(True, weight_decay=weight_decay, style=Style(batch_norm=BatchNorm(), **style))
        x = net.styled(biases=True).conv(tf.zeros([2, 4, 4, 3]), 4, 3, scope="conv")
        x = net.depthwise(x, 3, scope="depthwise")
        x = net.separable(x, 6, 3, scope="separable")
        net.dense(net.flatten(x), 5, scope="dense")
        session.run(tf.global_variables_initializer())
        tensors = {t.op.name.split("/Regularizer")[0]: t for t in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)}
        found, values = session.run([tensors, {v.op.name: v for v in tf.trainable_variables()}])
    assert len(tensors) == len(found)
    expected = {name: weight_decay * (values[name].astype("float64") ** 2).sum() / 2 for name in found}
    assert found == pytest.approx(expected, rel=1e-4)
    return sorted(found)


POINTWISE = ["conv/weights", "dense/weights", "separable/pointwise_weights"]


def test_only_weights_decay():
    assert losses(0.0) == []
    assert losses(0.25) == POINTWISE


def test_depthwise_weights_decay_if_asked_for():
    depthwise = ["depthwise/depthwise_weights", "separable/depthwise_weights"]
    assert losses(0.25, decay_depthwise=True) == sorted(POINTWISE + depthwise)
    assert losses(0.0, decay_depthwise=True) == []


def test_a_style_without_decay():
    assert losses(0.25, decay=False, decay_depthwise=True) == []


def small(net, x):
    net = net.styled(collect=True)
    with net.scope("net"):
        x = net.conv(x, 4, 3, scope="conv1")
        x = net.max_pool(x, 2, scope="pool1")
        with net.scope("block"):
            x = net.separable(x, 4, 3, scope="sep/inner")
            net.max_pool(x, 1)
            net.collected(x)
        x = net.end_point("Flatten", net.flatten(x))
        net.dense(x, 3, scope="fc")


COLLECTED = ["Flatten", "net/block", "net/block/sep/inner", "net/conv1", "net/fc", "net/pool1"]


VARIABLES = [
    "net/conv1/weights",
    "net/conv1/biases",
    "net/block/sep/inner/depthwise_weights",
    "net/block/sep/inner/pointwise_weights",
    "net/block/sep/inner/biases",
    "net/fc/weights",
    "net/fc/biases",
]


def test_end_points_are_relative_to_the_network():
    with tf.Graph().as_default():
        for outer, reuse in (("", False), ("outer", False), ("outer", True)):
            net = Layers(True, weight_decay=0.1)
            with tf.variable_scope(outer, reuse=reuse):
                small(net, tf.zeros([2, 8, 8, 3]))
            assert sorted(net.end_points) == COLLECTED
            assert net.end_points["net/block"] is net.end_points["net/block/sep/inner"]
            assert net.end_points["net/pool1"].shape == [2, 4, 4, 4]
        names = [variable.op.name for variable in tf.global_variables()]
        assert names == VARIABLES + [f"outer/{name}" for name in VARIABLES]
        # Reused weights decay once.
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2 * 3


def test_nothing_is_collected_unless_the_style_says_so():
    with tf.Graph().as_default():
        net = Layers(False)
        net.conv(tf.zeros([1, 4, 4, 3]), 4, 3, scope="conv1")
        net.max_pool(tf.zeros([1, 4, 4, 3]), 2, scope="pool1")
        assert net.end_points == {}


def test_a_scope_ends_with_an_error_too():
    with tf.Graph().as_default():
        net = Layers(False, style=Style(collect=True))
        with pytest.raises(ZeroDivisionError), net.scope("broken"):
            raise ZeroDivisionError
        net.conv(tf.zeros([1, 4, 4, 3]), 4, 3, scope="conv1")
        assert list(net.end_points) == ["conv1"]
        assert tf.global_variables()[0].op.name == "conv1/weights"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet_v1_18", "lenet"])
def test_end_points_of_a_network_in_a_users_scope_and_reused(name):
    x = images(32, 32, 3)
    found = []
    with tf.Graph().as_default(), tf.Session() as session:
        for outer, reuse in (("", False), ("outer", False), ("outer", True)):
            with tf.variable_scope(outer or tf.get_variable_scope(), reuse=reuse):
                found.append(get_model_fn(name, mox.ModeKeys.EVAL, 5)(tf.constant(x)))
        inner = [v.op.name for v in tf.global_variables() if not v.op.name.startswith("outer/")]
        assert [v.op.name for v in tf.global_variables()] == inner + [f"outer/{variable}" for variable in inner]
        assert sorted(found[0][1]) == sorted(found[1][1]) == sorted(found[2][1])
        session.run(tf.global_variables_initializer())
        plain, first, second = session.run([logits for logits, _ in found])
    np.testing.assert_allclose(first, second, rtol=1e-6)
    assert not np.allclose(plain, first)
