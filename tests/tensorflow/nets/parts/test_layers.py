"""The layers against sums written out in NumPy; their variables, decay and end points."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import HE_INITIALIZER, Layers, Style

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
            lambda t: net.styled(padding=padding, groups=groups).conv(t, 8, kernel, stride, scope="c", rate=rate),
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
            session,
            x,
            lambda t: net.styled(biases=False, padding=padding).depthwise(t, kernel, stride, scope="d", rate=rate),
        )
    assert set(variables) == {"d/depthwise_weights"}
    expected = depthwise_convolved(x, variables["d/depthwise_weights"], stride=(stride, stride), **options)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False, style=PLAIN)
        y, variables = outputs(
            session, x, lambda t: net.styled(padding=padding).separable(t, 5, kernel, stride, scope="s", rate=rate)
        )
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
            build = partial(net.styled(padding=padding).conv, depth=4, kernel=3, stride=2, scope="c")
            y, _ = outputs(session, x[:, :size, :size], build)
            found.append(y[:, :3, :3])
    assert np.allclose(found[0], found[1], atol=1e-5) is (padding == "FIXED")


def test_gradients_of_groups_and_fixed_padding():
    x = images(6, 6, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(True, style=PLAIN)
        outputs(session, x, lambda t: net.styled(padding="FIXED", groups=2).conv(t, 4, 3, 2, scope="c"))
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
            session, x, lambda t: net.styled(biases_initializer=tf.constant_initializer(0.1)).dense(t, 5, scope="fc")
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
        Layers(False, style=style).styled(**options).conv(tf.zeros([1, 4, 4, 3]), 2, 1, scope="c")
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
        net.styled(batch_norm=BatchNorm(center=False)).batch_norm(tf.zeros([1, 2, 2, 3]))
        assert [v.op.name for v in tf.trainable_variables()][1:] == ["BatchNorm/gamma"]


def test_initial_weights():
    with tf.Graph().as_default(), tf.Session() as session:
        net = Layers(False)
        assert net.style.initializer is HE_INITIALIZER
        x = tf.zeros([1, 4, 4, 32])
        net.conv(x, 128, 3, scope="style")
        net.styled(initializer=tf.constant_initializer(2.0)).conv(x, 128, 3, scope="own")
        net.styled(initializer=tf.constant_initializer(3.0)).conv(x, 4, 1, scope="styled")
        session.run(tf.global_variables_initializer())
        values = {v.op.name: session.run(v) for v in tf.trainable_variables() if v.op.name.endswith("weights")}
    assert values["style/weights"].std() == pytest.approx(np.sqrt(2 / (9 * 32)), rel=0.03)
    assert (values["own/weights"] == 2).all() and (values["styled/weights"] == 3).all()


# --- decay ------------------------------------------------------------------------------------------------------------


# --- names and end points ---------------------------------------------------------------------------------------------


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
        x = net.styled(batch_norm=None).separable(x, 6, 3, scope="separable")
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
        y = net.styled(biases=True).conv(tf.zeros([1, 4, 4, 3]), 4, 3, scope="c")
        assert y.dtype == tf.float32
        types = {variable.op.name: variable.dtype.base_dtype for variable in tf.trainable_variables()}
        assert types["c/weights"] == types["c/biases"] == tf.float16
        assert types["c/BatchNorm/gamma"] == tf.float32
