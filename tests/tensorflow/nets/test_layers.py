"""The layers against sums written out in NumPy; their variables, decay and end points."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.nets.batch_norm import BatchNorm
from moxing.tensorflow.nets.layers import HE_INITIALIZER, Layers, Style
from moxing.tensorflow.nets.nets_factory import get_model_fn

PLAIN = Style(activation=None, initializer=tf.random_normal_initializer(seed=3))


def images(height, width, channels, batch=2):
    return np.random.default_rng(5).normal(size=(batch, height, width, channels)).astype("float32")


def padded(x, kernel, stride, rate, padding):
    """`x` with the zeros around it that the padding means."""
    zeros = []
    for length, size, step in zip(x.shape[1:3], kernel, stride, strict=True):
        reach = (size - 1) * rate
        if padding == "SAME":
            reach = max((-(-length // step) - 1) * step + reach + 1 - length, 0)
        zeros.append((0, 0) if padding == "VALID" else (reach // 2, reach - reach // 2))
    return np.pad(x, [(0, 0), *zeros, (0, 0)])


def convolved(x, weights, stride=(1, 1), rate=1, padding="SAME", groups=1):
    """A convolution, tap by tap."""
    x = padded(x.astype("float64"), weights.shape[:2], stride, rate, padding)
    out_height, out_width = (
        (length - (size - 1) * rate - 1) // step + 1
        for length, size, step in zip(x.shape[1:3], weights.shape[:2], stride, strict=True)
    )
    depth = weights.shape[3] // groups
    result = np.zeros([x.shape[0], out_height, out_width, weights.shape[3]])
    for row, column in np.ndindex(*weights.shape[:2]):
        top, left = row * rate, column * rate
        seen = x[:, top : top + out_height * stride[0] : stride[0], left : left + out_width * stride[1] : stride[1]]
        seen = seen[:, :out_height, :out_width]
        for group in range(groups):
            channels = slice(group * weights.shape[2], (group + 1) * weights.shape[2])
            outputs = slice(group * depth, (group + 1) * depth)
            result[..., outputs] += seen[..., channels] @ weights[row, column, :, outputs]
    return result


def depthwise_convolved(x, weights, **options):
    # Every channel is a group of its own.
    return convolved(x, weights.transpose(0, 1, 3, 2), groups=x.shape[3], **options)


def outputs(session, x, build):
    """What `build` makes of `x`, and the variables by their names."""
    y = build(tf.placeholder_with_default(x, x.shape))
    session.run(tf.global_variables_initializer())
    return session.run([y, {variable.op.name: variable for variable in tf.global_variables()}])


# --- convolutions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", ["SAME", "VALID", "FIXED"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "rate", "groups", "training"),
    [
        ((7, 6), 3, 1, 1, 1, False),
        ((7, 6), 3, 2, 1, 1, False),
        ((8, 9), 3, 2, 1, 1, False),
        ((8, 9), 2, 2, 1, 1, False),
        ((9, 8), (1, 4), 2, 1, 1, False),
        ((9, 8), (3, 2), (2, 1), 1, 1, False),
        ((9, 8), 3, 1, 2, 1, False),
        ((9, 8), (2, 3), 1, 2, 1, False),
        ((9, 11), 3, 2, 2, 1, True),
        ((6, 6), 1, 3, 1, 1, True),
        ((6, 7), 3, 1, 1, 2, False),
        ((6, 7), 3, 2, 1, 4, False),
        ((6, 7), 3, 1, 1, 2, True),
        ((9, 7), 3, 1, 2, 4, True),
        ((9, 7), 3, 2, 1, 4, True),
    ],
)
def test_convolution(size, kernel, stride, rate, groups, padding, training):
    x = images(*size, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(training, style=PLAIN)
        y, variables = outputs(
            session,
            x,
            lambda t: net.conv(t, 8, kernel, stride, scope="c", padding=padding, rate=rate, groups=groups),
        )
    assert set(variables) == {"c/weights", "c/biases"}
    steps = stride if isinstance(stride, tuple) else (stride, stride)
    expected = convolved(x, variables["c/weights"], steps, rate, padding, groups)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "FIXED"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "rate"),
    [((7, 6), 3, 1, 1), ((7, 6), 3, 2, 1), ((8, 9), 2, 2, 1), ((8, 9), 5, 2, 1), ((9, 8), 3, 1, 2)],
)
def test_depthwise_and_separable(size, kernel, stride, rate, padding):
    x = images(*size, 3)
    options = {"padding": padding, "rate": rate}
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False, style=PLAIN)
        y, variables = outputs(
            session, x, lambda t: net.depthwise(t, kernel, stride, scope="d", biases=False, **options)
        )
    assert set(variables) == {"d/depthwise_weights"}
    expected = depthwise_convolved(x, variables["d/depthwise_weights"], stride=(stride, stride), **options)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False, style=PLAIN)
        y, variables = outputs(session, x, lambda t: net.separable(t, 5, kernel, stride, scope="s", **options))
    assert set(variables) == {"s/depthwise_weights", "s/pointwise_weights", "s/biases"}
    expected = depthwise_convolved(x, variables["s/depthwise_weights"], stride=(stride, stride), **options)
    np.testing.assert_allclose(y, expected @ variables["s/pointwise_weights"][0, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", ["SAME", "FIXED"])
def test_fixed_padding_looks_at_the_same_pixels_for_every_size(padding):
    """What the padding is for: the top left corner sees the same, whether the image is even or odd."""
    x = images(9, 9, 2)
    found = []
    for size in (8, 9):
        with tf.Graph().as_default(), tf.Session() as session:
            net = Layers(False, style=PLAIN)
            build = partial(net.conv, depth=4, kernel=3, stride=2, scope="c", padding=padding)
            y, _ = outputs(session, x[:, :size, :size], build)
            found.append(y[:, :3, :3])
    assert np.allclose(found[0], found[1], atol=1e-5) is (padding == "FIXED")


def test_gradients_of_groups_and_fixed_padding():
    x = images(6, 6, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(True, style=PLAIN)
        outputs(session, x, lambda t: net.conv(t, 4, 3, 2, scope="c", padding="FIXED", groups=2))
        tensor = tf.get_default_graph().get_tensor_by_name("c/BiasAdd:0")
        weights = tf.global_variables()[0]
        found = session.run(tf.gradients(tensor[1, 2, 0, 3], weights)[0])
    around = padded(x, (3, 3), (2, 2), 1, "FIXED")[1, 4:7, 0:3]
    expected = np.zeros([3, 3, 2, 4])
    expected[..., 3] = around[..., 2:]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_dense():
    x = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False)
        y, variables = outputs(
            session, x, lambda t: net.dense(t, 5, scope="fc", biases_initializer=tf.constant_initializer(0.1))
        )
        assert [variable.op.name for variable in tf.trainable_variables()] == ["fc/weights", "fc/biases"]
    np.testing.assert_array_equal(variables["fc/biases"], np.full(5, 0.1, "float32"))
    np.testing.assert_allclose(y, np.maximum(x @ variables["fc/weights"] + 0.1, 0), rtol=1e-5, atol=1e-6)
    assert (y == 0).any() and (y > 0).any()


def test_dense_has_no_batch_normalisation_whatever_the_style():
    with tf.Graph().as_default():
        Layers(True, style=Style(batch_norm=BatchNorm())).dense(tf.zeros([2, 3]), 4, scope="fc")
        assert [variable.op.name for variable in tf.global_variables()] == ["fc/weights", "fc/biases"]


# --- what a layer ends with -------------------------------------------------------------------------------------------


def names_of(style, **options):
    with tf.Graph().as_default() as graph:
        Layers(False, style=style).conv(tf.zeros([1, 4, 4, 3]), 2, 1, scope="c", **options)
        kinds = {operation.type for operation in graph.get_operations()} & {
            "Relu",
            "Tanh",
            "BiasAdd",
            "FusedBatchNormV3",
        }
        return [variable.op.name.removeprefix("c/") for variable in tf.global_variables()], kinds


NORMALISED = ["weights", "BatchNorm/gamma", "BatchNorm/beta", "BatchNorm/moving_mean", "BatchNorm/moving_variance"]


@pytest.mark.parametrize(
    ("style", "options", "variables", "kinds"),
    [
        (Style(), {}, ["weights", "biases"], {"Relu", "BiasAdd"}),
        (Style(), {"activation": None}, ["weights", "biases"], {"BiasAdd"}),
        (Style(activation=None), {"activation": tf.nn.tanh}, ["weights", "biases"], {"Tanh", "BiasAdd"}),
        (Style(), {"biases": False}, ["weights"], {"Relu"}),
        (Style(), {"batch_norm": BatchNorm()}, NORMALISED, {"Relu", "FusedBatchNormV3"}),
        (Style(batch_norm=BatchNorm()), {}, NORMALISED, {"Relu", "FusedBatchNormV3"}),
        (Style(batch_norm=BatchNorm()), {"batch_norm": None}, ["weights", "biases"], {"Relu", "BiasAdd"}),
        (Style(batch_norm=BatchNorm()), {"batch_norm": None, "biases": False}, ["weights"], {"Relu"}),
        (
            Style(batch_norm=BatchNorm()),
            {"biases": True, "activation": None},
            ["weights", "biases", *NORMALISED[1:]],
            {"BiasAdd", "FusedBatchNormV3"},
        ),
        (
            Style(batch_norm=BatchNorm()),
            {"batch_norm": BatchNorm(scale=False)},
            ["weights", *NORMALISED[2:]],
            {"Relu", "FusedBatchNormV3"},
        ),
    ],
)
def test_end_of_a_layer(style, options, variables, kinds):
    assert names_of(style, **options) == (variables, kinds)


@pytest.mark.parametrize("training", [True, False])
def test_normalised_convolution_is_normalised_before_its_activation(training):
    x = images(5, 5, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(training, style=Style(batch_norm=BatchNorm(epsilon=0.001)))
        y, variables = outputs(session, x, lambda t: net.conv(t, 4, 3, scope="c"))
    expected = convolved(x, variables["c/weights"])
    if training:
        expected = (expected - expected.mean((0, 1, 2))) / np.sqrt(expected.var((0, 1, 2)) + 0.001)
    else:
        expected = expected / np.sqrt(1.001)
    np.testing.assert_allclose(y, np.maximum(expected, 0), rtol=1e-3, atol=1e-4)


def test_batch_norm_by_itself():
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False, style=Style(batch_norm=BatchNorm(scale=False)))
        y, variables = outputs(
            session, images(2, 2, 3), lambda t: net.batch_norm(t, scope="preact", activation=tf.nn.relu)
        )
        assert set(variables) == {"preact/beta", "preact/moving_mean", "preact/moving_variance"}
        assert y.min() == 0
        net.batch_norm(tf.zeros([1, 2, 2, 3]), style=BatchNorm(center=False))
        assert [v.op.name for v in tf.trainable_variables()][1:] == ["BatchNorm/gamma"]


def test_initial_weights():
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False)
        assert net.style.initializer is HE_INITIALIZER
        x = tf.zeros([1, 4, 4, 32])
        net.conv(x, 128, 3, scope="style")
        net.conv(x, 128, 3, scope="own", initializer=tf.constant_initializer(2.0))
        net.styled(initializer=tf.constant_initializer(3.0)).conv(x, 4, 1, scope="styled")
        session.run(tf.global_variables_initializer())
        values = {v.op.name: session.run(v) for v in tf.trainable_variables() if v.op.name.endswith("weights")}
    assert values["style/weights"].std() == pytest.approx(np.sqrt(2 / (9 * 32)), rel=0.03)
    assert (values["own/weights"] == 2).all() and (values["styled/weights"] == 3).all()


# --- decay ------------------------------------------------------------------------------------------------------------


def losses(weight_decay, **style):
    """The decays of one layer of each kind, by the variable's name, beside what they should be."""
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(True, weight_decay=weight_decay, style=Style(batch_norm=BatchNorm(), **style))
        x = net.conv(tf.zeros([2, 4, 4, 3]), 4, 3, scope="conv", biases=True)
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


# --- names and end points ---------------------------------------------------------------------------------------------


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


# --- axes and layers without weights ----------------------------------------------------------------------------------


def test_axes():
    last, first = Layers(False), Layers(False, "NCHW")
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, 5, None, 3]), tf.placeholder(tf.float32, [None, 3, 5, None])
        for net, images_ in ((last, x), (first, y)):
            assert net.channels(images_) == 3
            assert net.size(images_) == (5, None)
            assert net.channels(net.concat([images_, images_])) == 6
            assert net.channels_last(images_).shape.as_list() == [None, 5, None, 3]
            assert net.global_pool(images_, keep=False).shape.as_list() == [None, 3]
            assert net.squeeze(net.global_pool(images_)).shape.as_list() == [None, 3]
        assert last.per_axis(7, 8) == [1, 7, 8, 1] and first.per_axis(7, 8) == [1, 1, 7, 8]
        assert first.per_axis(7, 8, other=0) == [0, 0, 7, 8]


def test_flatten_is_in_the_same_order_in_both_formats():
    x = images(2, 3, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        last = Layers(False).flatten(tf.constant(x))
        first = Layers(False, "NCHW").flatten(tf.constant(x.transpose(0, 3, 1, 2)))
        np.testing.assert_array_equal(*session.run([last, first]))
        np.testing.assert_array_equal(session.run(last), x.reshape(2, 24))


def test_pools():
    x = images(5, 4, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False)
        largest = session.run(net.max_pool(tf.constant(x), 2))
        mean = session.run(net.avg_pool(tf.constant(x), (3, 2), 1, padding="SAME"))
        whole = session.run(net.global_pool(tf.constant(x)))
    expected = x[:, :4, :4].reshape(2, 2, 2, 2, 2, 2).max((2, 4))
    np.testing.assert_array_equal(largest, expected)
    # Zeros around the image are not counted.
    np.testing.assert_allclose(mean[:, 0, 0], x[:, :2, :2].mean((1, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mean[:, 4, 3], x[:, 3:, 3:].mean((1, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(whole, x.mean((1, 2), keepdims=True), rtol=1e-5, atol=1e-6)


def test_dropout():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.ones([100, 100])
        assert Layers(False).dropout(x, 0.5) is x
        assert Layers(True).dropout(x, 1.0) is x
        kept = session.run(Layers(True).dropout(x, 0.8))
        assert set(np.unique(kept)) == {np.float32(0), np.float32(1.25)}
        assert (kept > 0).mean() == pytest.approx(0.8, abs=0.02)
        for keep_prob in (0, -1, 1.1, float("nan")):
            with pytest.raises(ValueError, match=rf"dropout_keep_prob={keep_prob}: expected"):
                Layers(False).dropout(x, keep_prob)


def test_channels_first_is_built_as_such():
    with tf.Graph().as_default() as graph:
        net = Layers(True, "NCHW", weight_decay=0.1, style=Style(batch_norm=BatchNorm(), padding="FIXED"))
        x = net.conv(tf.zeros([2, 3, 8, 10]), 4, 3, (2, 1), scope="conv", rate=1)
        assert x.shape == [2, 4, 4, 10]
        x = net.depthwise(x, 3, 2, scope="depthwise")
        x = net.separable(x, 6, 3, scope="separable", batch_norm=None)
        assert net.max_pool(x, 2).shape == [2, 6, 1, 2]
        typed = {
            operation.get_attr("data_format")
            for operation in graph.get_operations()
            if operation.type in ("Conv2D", "DepthwiseConv2dNative", "BiasAdd", "FusedBatchNormV3", "MaxPool")
        }
        assert typed == {b"NCHW"}
        shapes = {variable.op.name: variable.shape.as_list() for variable in tf.trainable_variables()}
        assert shapes["conv/weights"] == [3, 3, 3, 4] and shapes["separable/depthwise_weights"] == [3, 3, 4, 1]


def test_weights_asked_for_in_another_type_than_they_are_used_in():
    with tf.Graph().as_default():
        net = Layers(True, variable_dtype=tf.float16, style=Style(batch_norm=BatchNorm()))
        y = net.conv(tf.zeros([1, 4, 4, 3]), 4, 3, scope="c", biases=True)
        assert y.dtype == tf.float32
        types = {variable.op.name: variable.dtype.base_dtype for variable in tf.trainable_variables()}
        assert types["c/weights"] == types["c/biases"] == tf.float16
        assert types["c/BatchNorm/gamma"] == tf.float32
