"""VGG: counts of the normalised ones, sizes, options, and the head that other networks share."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built, channels_first, check_too_small, dependent_on_classes, shapes

from moxing.tensorflow.nets.parts.layers import Layers, Style
from moxing.tensorflow.nets.vgg import NETWORKS, classified


def build(name, shape=(2, 224, 224, 3), **options):
    return built(NETWORKS[name].architecture, shape, **options)


# Parameters as torchvision states them (`num_params` of VGG11_BN_Weights, VGG16_BN_Weights and VGG19_BN_Weights, 1,000
# classes): weights and biases of all layers, and scale and shift of every normalisation.
@pytest.mark.parametrize(
    ("name", "parameters"), [("vgg_a_bn", 132_868_840), ("vgg_16_bn", 138_365_992), ("vgg_19_bn", 143_678_248)]
)
def test_parameters_with_batch_normalisation(name, parameters):
    with tf.Graph().as_default():
        build(name, num_classes=1000)
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == parameters
        assert all(variable.op.name.startswith(f"{name}/") for variable in tf.global_variables())


def test_what_is_normalised():
    with tf.Graph().as_default():
        build("vgg_16_bn", training=True)
        layers = {name.split("/BatchNorm")[0] for name in shapes() if "BatchNorm" in name}
        assert layers == {name.rsplit("/", 1)[0] for name in shapes() if re.search(r"conv\d_\d/weights", name)}
        assert len(layers) == 13
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2 * 13
    with tf.Graph().as_default():
        build("vgg_16", training=True)
        assert not any("BatchNorm" in name for name in shapes())


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_only_the_last_layer_depends_on_the_classes(name):
    differing = dependent_on_classes(partial(build, name), NETWORKS[name].logits_pattern)
    assert differing == {f"{name}/fc8/weights", f"{name}/fc8/biases"}


@pytest.mark.parametrize("shape", [(2, 256, 300, 3), (2, None, None, 3), (None, None, 224, 3)])
@pytest.mark.parametrize("training", [False, True])
def test_other_sizes_are_pooled(shape, training):
    with tf.Graph().as_default():
        net, logits = build("vgg_a", shape, training=training)
        assert logits.shape.as_list() == [shape[0], 10]
        assert net.end_points["global_pool"].shape.as_list() == [shape[0], 1, 1, 4096]
        assert net.end_points["vgg_a/fc8"] is logits
        assert shapes()["vgg_a/fc6/weights"] == [7, 7, 512, 4096]


def test_the_published_size_is_not_pooled():
    with tf.Graph().as_default():
        net, logits = build("vgg_a")
        assert "global_pool" not in net.end_points
        assert logits.shape.as_list() == [2, 10]


def test_smallest():
    smallest = NETWORKS["vgg_16"].smallest
    with tf.Graph().as_default():
        build("vgg_16", (1, smallest, smallest, 3), training=True)
    check_too_small(partial(build, "vgg_16"), (1, smallest - 1, smallest, 3))


def test_features():
    with tf.Graph().as_default():
        net, features = build("vgg_a", num_classes=None)
        assert features is net.end_points["vgg_a/fc7"]
        assert features.shape.as_list() == [2, 1, 1, 4096]
        assert not any("fc8" in name for name in shapes())
    with tf.Graph().as_default():
        assert build("vgg_a", (2, None, None, 3), num_classes=None)[1].shape.as_list() == [2, 1, 1, 4096]


@pytest.mark.parametrize("name", ["vgg_a", "vgg_a_bn"])
def test_channels_first(name):
    net = channels_first(partial(build, name), (2, 256, 256, 3))
    assert net.end_points[f"{name}/pool5"].shape.as_list() == [2, 512, 8, 8]


def test_dense_prediction():
    with tf.Graph().as_default():
        net, logits = build("vgg_a", (1, 288, 256, 3), spatial_squeeze=False)
        assert logits.shape.as_list() == [1, 3, 2, 10]
        assert net.end_points["vgg_a/fc8"] is logits
    with tf.Graph().as_default():
        _, logits = build("vgg_a", (1, 288, 256, 3), spatial_squeeze=False, fc_conv_padding="SAME")
        assert logits.shape.as_list() == [1, 9, 8, 10]
    with tf.Graph().as_default():
        _, logits = build("vgg_a", (1, 288, 256, 3), spatial_squeeze=False, global_pool=True)
        assert logits.shape.as_list() == [1, 1, 1, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout_keep_prob": 0}, r"dropout_keep_prob=0: expected a number above 0 and at most 1"),
        ({"dropout_keep_prob": 1.5}, r"dropout_keep_prob=1.5: expected"),
        ({"fc_conv_padding": "FIXED"}, r"fc_conv_padding='FIXED': expected 'VALID' or 'SAME'"),
        ({"global_pool": False}, r"global_pool=False gives a map of 2 x \? logits.*spatial_squeeze=False"),
    ],
)
def test_bad_options(options, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        build("vgg_a", (1, 256, None, 3), **options)


def test_all_weights_decay():
    with tf.Graph().as_default():
        build("vgg_16", weight_decay=0.5)
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert len(losses) == len([name for name in shapes() if name.endswith("/weights")]) == 16


def test_initial_weights():
    with tf.Graph().as_default(), tf.Session() as session:
        build("vgg_a")
        weights, biases = (tf.global_variables(f"vgg_a/conv1/conv1_1/{name}")[0] for name in ("weights", "biases"))
        session.run([weights.initializer, biases.initializer])
        values = session.run(weights)
        # Glorot and Bengio: uniform, variance 2 / (fan in + fan out).
        assert values.std() == pytest.approx((2 / (27 + 9 * 64)) ** 0.5, rel=0.05)
        assert np.abs(values).max() < (6 / (27 + 9 * 64)) ** 0.5
        assert not session.run(biases).any()


def head(net, x, **options):
    options = {"dropout_keep_prob": 0.5, "spatial_squeeze": True, "global_pool": None} | options
    return classified(net, x, 3, fc6=(6, 2), fc7=5, **options)


def test_the_head_averages_the_places():
    x = np.random.default_rng(0).normal(size=[2, 3, 4, 4]).astype("float32")
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(training=False, style=Style(collect=True))
        logits = head(net, tf.constant(x))
        weights, biases = tf.global_variables("fc8/")
        session.run(tf.global_variables_initializer())
        session.run(biases.assign([1.0, 2.0, 3.0]))
        got, fc7, last, added = session.run([logits, net.end_points["fc7"], weights, biases])
        assert fc7.shape == (2, 2, 3, 5)
        np.testing.assert_allclose(got, fc7.mean((1, 2)) @ last[0, 0] + added, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("training", "keep", "same"), [(False, 0.5, True), (True, 0.5, False), (True, 1.0, True)])
def test_the_head_drops_in_training(training, keep, same):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        logits = head(Layers(training=training), tf.ones([8, 2, 2, 4]), dropout_keep_prob=keep)
        session.run(tf.global_variables_initializer())
        assert np.array_equal(session.run(logits), session.run(logits)) == same
        assert len([op for op in tf.get_default_graph().get_operations() if op.type == "RandomUniform"]) == (
            0 if same else 2
        )
