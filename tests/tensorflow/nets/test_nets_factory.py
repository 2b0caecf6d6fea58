"""`mox.get_model_fn`: every argument, right and wrong; images of every kind; NCHW; sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import slow_if

import moxing.tensorflow as mox
from moxing.tensorflow import network_registry
from moxing.tensorflow.nets.nets_factory import get_model_fn, options_of
from moxing.tensorflow.network_registry import Network, NetworkKeys, network, register_network

#: With a batch normalisation, fast to build.
NAME = "resnet_v1_20"


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(4)
        yield graph


def pixels(*shape):
    return np.random.default_rng(3).integers(0, 256, shape).astype("uint8")


def run(*tensors, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors, feed)


def shared():
    """Networks that are built inside have the same variables."""
    return tf.variable_scope("", reuse=tf.AUTO_REUSE)


def convolution_formats(graph):
    return {op.get_attr("data_format").decode() for op in graph.get_operations() if op.type == "Conv2D"}


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "resnet50"}, "get_model_fn(name='resnet50'): no such network; did you mean 'resnet_v1_50'"),
        ({"name": "mobilenetv2"}, "get_model_fn(name='mobilenetv2'): no such network; did you mean 'mobilenet_v2'"),
        ({"name": "qqqq"}, "get_model_fn(name='qqqq'): no such network; expected one of alexnet_v2, cifarnet, "),
        ({"name": None}, "get_model_fn(name=None): no such network; "),
        ({"name": 5}, "get_model_fn(name=5): no such network; "),
        ({"run_mode": "INFER"}, "get_model_fn(run_mode='INFER'): expected one of mox.ModeKeys: TRAIN, EVAL, PRE"),
        ({"run_mode": None}, "get_model_fn(run_mode=None): expected one of mox.ModeKeys"),
        ({"run_mode": True}, "get_model_fn(run_mode=True): expected one of mox.ModeKeys"),
        *(
            ({"num_classes": value}, f"get_model_fn(num_classes={value!r}): expected a whole number of classes, or N")
            for value in (0, -1, 2.5, True, "10", "ten", [10], float("nan"), float("inf"))
        ),
        *(
            ({"weight_decay": value}, f"get_model_fn(weight_decay={value!r}): expected a number from 0.")
            for value in (-1e-4, float("nan"), float("inf"), None, "0.1", [0.1])
        ),
        *(
            ({"data_format": value}, f"get_model_fn(data_format={value!r}): expected 'NHWC' or 'NCHW'.")
            for value in ("nhwc", "channels_last", None, 1)
        ),
        *(
            ({argument: value}, f"get_model_fn({argument}={value!r}): expected True or False.")
            for argument in ("batch_norm_fused", "batch_renorm")
            for value in ("False", None, 2)
        ),
        *(
            ({argument: value}, f"get_model_fn({argument}={value!r}): expected a whole number of pixels, or None.")
            for argument in ("image_height", "image_width")
            for value in (0, -28, 28.5, "28", True)
        ),
        ({"preprocess_fn": "vgg"}, "get_model_fn(preprocess_fn='vgg'): expected a function (images, run_mode), or"),
        ({"preprocess_fn": False}, "get_model_fn(preprocess_fn=False): expected a function (images, run_mode), or"),
        ({"keep_prob": 0.5}, "get_model_fn('lenet', ...) has no argument keep_prob; the options of this network: "
            "dropout_keep_prob."),
        ({"zz": 1, "aa": 1}, "get_model_fn('lenet', ...) has no argument aa, zz; the options of this network: "),
        ({"name": "resnet_v1_50", "units": (1,)}, "get_model_fn('resnet_v1_50', ...) has no argument units; the "
            "options of this network: output_stride, global_pool, spatial_squeeze."),
        ({"name": "resnet_v1_50", "is_training": True}, "has no argument is_training; the options"),
        ({"name": "resnet_v1_50", "outputstride": 8}, "get_model_fn('resnet_v1_50', ...) has no argument outputstride "
            "(did you mean output_stride?); the options of this network: output_stride, global_pool, "),
        ({"zz": 1, "dropout": 0.5}, "has no argument dropout (did you mean dropout_keep_prob?), zz; the options"),
        ({"weigth_decay": 1e-4}, "has no argument weigth_decay (did you mean weight_decay?); the options"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_before_anything_is_built(graph, changes, message):
    arguments = {"name": "lenet", "run_mode": "TRAIN", "num_classes": 10, **changes}
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        get_model_fn(**arguments)
    assert graph.get_operations() == []


@pytest.mark.parametrize("name", ["lenet", "LeNet", "LENET", NetworkKeys.LENET, mox.NetworkKeys.LENET])
@pytest.mark.parametrize("mode", [mox.ModeKeys.TRAIN, "TRAIN", "train"])
def test_spellings(name, mode):
    assert get_model_fn(name, mode, np.int64(3))(tf.zeros([1, 8, 8, 1]))[0].shape == [1, 3]


def test_whole_numbers_may_be_of_any_type():
    x = tf.placeholder(tf.float32, [None, None, None, 1])
    logits, _ = get_model_fn("lenet", "EVAL", 3.0, image_height=np.int32(8), image_width=8.0)(x)
    assert logits.shape.as_list() == [None, 3]
    assert tf.global_variables()[4].shape == [2 * 2 * 64, 1024]


@pytest.mark.parametrize("mode", mox.ModeKeys)
def test_only_training_trains(graph, mode):
    get_model_fn(NAME, mode, 5)(tf.zeros([2, 16, 16, 3]))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    training = [op.get_attr("is_training") for op in graph.get_operations() if op.type == "FusedBatchNormV3"]
    assert set(training) == {mode is mox.ModeKeys.TRAIN}
    assert len(updates) == (2 * len(training) if mode is mox.ModeKeys.TRAIN else 0)


def test_weight_decay():
    get_model_fn("lenet", "TRAIN", 10, weight_decay=0.1)(tf.zeros([1, 8, 8, 1]))
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    weights = [variable for variable in tf.trainable_variables() if variable.op.name.endswith("weights")]
    assert len(losses) == len(weights) == 4
    found, values = run(losses, weights)
    np.testing.assert_allclose(found, [0.05 * (value.astype("float64") ** 2).sum() for value in values], rtol=1e-4)


def test_no_weight_decay():
    get_model_fn("lenet", "TRAIN", 10, weight_decay=0)(tf.zeros([1, 8, 8, 1]))
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == []


@pytest.mark.parametrize("fused", [False, True])
def test_batch_norm_fused_decides_on_the_variance(fused):
    x = np.random.default_rng(0).normal(size=(1, 2, 2, 3)).astype("float32")
    options = {} if not fused else {"batch_norm_fused": True}
    get_model_fn(NAME, "TRAIN", 5, **options)(tf.constant(x))
    first = [
        variable for variable in tf.global_variables() if variable.op.name.endswith("conv1/BatchNorm/moving_variance")
    ]
    convolved = next(op for op in tf.get_default_graph().get_operations() if op.type == "Conv2D").outputs[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value = session.run(convolved)
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        found = session.run(first[0])
    # Four pixels: the unbiased variance is a third more than the biased one.
    change = (found - 1) / (value.var((0, 1, 2), ddof=1 if fused else 0) - 1)
    np.testing.assert_allclose(change, np.full(change.shape, change[0]), rtol=1e-2)
    assert 0 < change[0] < 0.2


@pytest.mark.slow
def test_batch_renorm(graph):
    tf.train.get_or_create_global_step()
    with shared():
        x = tf.constant(np.random.default_rng(0).normal(size=(4, 8, 8, 3)).astype("float32"))
        plain, _ = get_model_fn(NAME, "TRAIN", 5)(x)
        renormalised, _ = get_model_fn(NAME, "TRAIN", 5, batch_renorm=True)(x)
        inferred, _ = get_model_fn(NAME, "EVAL", 5, batch_renorm=True)(x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([plain, renormalised])
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4)
        session.run(tf.train.get_global_step().assign(40_000))
        first, second, third = session.run([plain, renormalised, inferred])
    assert not np.allclose(first, second, atol=1e-3)
    assert not np.allclose(third, first, atol=1e-3)


def test_options_reach_the_network():
    _, end_points = get_model_fn("lenet", "TRAIN", 10, dropout_keep_prob=1.0)(tf.zeros([1, 8, 8, 1]))
    assert end_points["dropout3"] is end_points["fc3"]
    with shared(), pytest.raises(ValueError, match="dropout_keep_prob=7: expected"):
        get_model_fn("lenet", "TRAIN", 10, dropout_keep_prob=7)(tf.zeros([1, 8, 8, 1]))


@pytest.mark.parametrize("key", NetworkKeys)
def test_options_have_defaults_and_names_of_their_own(key):
    options = options_of(network(key))
    fixed = {"name", "run_mode", "num_classes", "weight_decay", "data_format", "batch_norm_fused", "batch_renorm",
             "image_height", "image_width", "preprocess_fn"}  # fmt: skip
    assert not fixed & set(options)
    get_model_fn(key, "TRAIN", 10, **options)


@pytest.mark.slow
def test_features_without_classes():
    features, end_points = get_model_fn(NAME, "EVAL", None)(tf.zeros([2, 16, 16, 3]))
    assert features.shape == [2, 1, 1, 64] and features is end_points["global_pool"]
    assert not any("logits" in variable.op.name for variable in tf.global_variables())


def test_one_model_function_may_be_called_twice():
    model = get_model_fn("lenet", "EVAL", 3)
    with shared():
        first, ends = model(tf.zeros([1, 8, 8, 1]))
        second, other_ends = model(tf.ones([4, 8, 8, 1]))
    assert len(tf.global_variables()) == 8
    assert ends is not other_ends and ends["pool1"] is not other_ends["pool1"]
    assert (first.shape.as_list(), second.shape.as_list()) == ([1, 3], [4, 3])


# --- images -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "normalised"),
    [
        ("resnet_v1_18", lambda x: x - np.float32([123.68, 116.78, 103.94])),
        ("mobilenet_v1_025", lambda x: x / np.float32(127.5) - 1),
        ("lenet", lambda x: x / np.float32(128) - 1),
    ],
)
def test_pixels_are_as_good_as_normalised_images(name, normalised):
    x = pixels(2, 32, 32, 3)
    with shared():
        model = get_model_fn(name, "EVAL", 5)
        from_pixels, _ = model(tf.constant(x))
        from_floats, _ = model(tf.constant(normalised(x.astype("float32"))))
        by_function, _ = get_model_fn(
            name, "EVAL", 5, preprocess_fn=lambda images, run_mode: normalised(tf.cast(images, tf.float32))
        )(tf.constant(x))
        undone, _ = get_model_fn(name, "EVAL", 5, preprocess_fn=None)(tf.constant(x.astype("float32")))
    first, second, third, other = run(from_pixels, from_floats, by_function, undone)
    np.testing.assert_allclose(second, first, rtol=1e-3, atol=1e-4 * np.abs(first).max())
    np.testing.assert_allclose(third, first, rtol=1e-3, atol=1e-4 * np.abs(first).max())
    assert np.abs(other - first).max() > 0.01 * np.abs(first).max()


def test_floats_are_taken_as_they_are():
    x = np.random.default_rng(0).normal(size=(2, 8, 8, 1)).astype("float32")
    with shared():
        first, _ = get_model_fn("lenet", "EVAL", 3)(x)
        second, _ = get_model_fn("lenet", "EVAL", 3, preprocess_fn=None)(x)
        third, _ = get_model_fn("lenet", "EVAL", 3, preprocess_fn=lambda images, mode: images * 2)(x)
    values = run(first, second, third)
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.allclose(values[0], values[2])


@pytest.mark.parametrize("mode", mox.ModeKeys)
def test_the_function_gets_the_run_mode(mode):
    calls = []

    def preprocess_fn(images, run_mode):
        calls.append((images.shape.as_list(), images.dtype, run_mode))
        return tf.cast(images, tf.float32)

    get_model_fn("lenet", mode, 3, preprocess_fn=preprocess_fn)(tf.zeros([2, 8, 8, 1], tf.uint8))
    assert calls == [([2, 8, 8, 1], tf.uint8, mode)]
    assert calls[0][2] is mode


def test_a_function_may_resize_what_is_too_small(graph):
    resize = lambda images, mode: tf.image.resize(tf.cast(images, tf.float32), [195, 195])  # noqa: E731
    logits, _ = get_model_fn("alexnet_v2", "EVAL", 3, preprocess_fn=resize)(tf.zeros([1, 20, 20, 3]))
    assert logits.shape == [1, 3]
    x = tf.placeholder(tf.uint8, [None, None, None, 3])
    with shared():
        assert get_model_fn("alexnet_v2", "EXPORT", 3, preprocess_fn=resize)(x)[0].shape.as_list() == [None, 3]
    shrink = lambda images, mode: tf.image.resize(images, [194, 300])  # noqa: E731
    with pytest.raises(
        ValueError, match="alexnet_v2 was given images of height 194: its layers need at least 195 x 195"
    ):
        get_model_fn("alexnet_v2", "EVAL", 3, preprocess_fn=shrink)(tf.zeros([1, 300, 300, 3]))


def test_one_image_is_no_batch():
    with pytest.raises(ValueError, match=r"lenet was given images of shape \(28, 28, 1\).*tf.expand_dims"):
        get_model_fn("lenet", "EVAL", 3)(tf.zeros([28, 28, 1]))


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_export_needs_a_size():
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    for name, size in (("resnet_v1_20", 32), ("alexnet_v2", 224)):
        message = (
            rf"{name}: `image_height` and `image_width` should be given.*image_height={size}, image_width={size}\."
        )
        with pytest.raises(ValueError, match=message):
            get_model_fn(name, "EXPORT", 3)(x)
        with pytest.raises(ValueError, match=message):
            get_model_fn(name, "EXPORT", 3, image_height=size)(x)
    logits, _ = get_model_fn(NAME, "EXPORT", 3, image_height=32, image_width=40)(x)
    assert logits.shape.as_list() == [None, 3]
    with shared():
        get_model_fn(NAME, "EXPORT", 3)(tf.placeholder(tf.float32, [None, 32, 32, 3]))


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL", "PREDICT"])
def test_other_modes_do_not(mode):
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    logits, _ = get_model_fn(NAME, mode, 3)(x)
    (values,) = run(logits, feed={x: np.ones([2, 9, 21, 3])})
    assert values.shape == (2, 3) and np.isfinite(values).all()


def test_a_size_other_than_that_of_the_images():
    with pytest.raises(
        ValueError, match=re.escape("get_model_fn(image_width=30): lenet was given images of shape (2, 28,")
    ):
        get_model_fn("lenet", "EVAL", 3, image_height=28, image_width=30)(tf.zeros([2, 28, 28, 1]))


SMALLEST = {key: network(key).smallest for key in NetworkKeys if network(key).smallest > 1}


def test_networks_that_need_a_size():
    assert {"lenet", "cifarnet", "alexnet_v2", "overfeat", "vgg_16", "inception_v3", "pvanet"} <= set(SMALLEST)


@pytest.mark.slow
@pytest.mark.parametrize("key", slow_if(SMALLEST, {"nasnet_large", "nasnet_mobile", "pnasnet_large"}.__contains__))
def test_the_smallest_image(key):
    least = SMALLEST[key]
    for height, width, argument in ((least - 1, least, "height"), (least, least - 1, "width")):
        message = (
            f"{key} was given images of {argument} {least - 1}: its layers need at least {least} x {least} pixels "
            f"(it was published with {network(key).image_size} x {network(key).image_size})."
        )
        with pytest.raises(ValueError, match=re.escape(message)):
            get_model_fn(key, "TRAIN", 10)(tf.zeros([1, height, width, 3]))
    assert tf.global_variables() == []
    # Training: an auxiliary head may need more than the network itself.
    logits, _ = get_model_fn(key, "TRAIN", 10)(tf.placeholder(tf.float32, [1, least, least, 3]))
    assert logits.shape == [1, 10]


# --- networks of scripts ----------------------------------------------------------------------------------------------


@pytest.fixture
def register(monkeypatch):
    monkeypatch.setattr(network_registry, "_registered", {})

    def with_scope(architecture, scope="tiny"):
        network = Network(architecture, scope=scope, image_size=4, logits_pattern="logits")
        register_network("tiny", network)
        return get_model_fn("tiny", "TRAIN", 3)

    return with_scope


@pytest.mark.parametrize("returned", [None, "logits", (tf.constant, {})])
def test_an_architecture_returns_a_tensor(register, returned):
    def tiny(net, images, num_classes):
        return returned

    message = f"The network 'tiny': tiny() returned {returned!r:.200}; expected a tensor: the logits, or the features"
    with pytest.raises(TypeError, match=re.escape(message)):
        register(tiny)(tf.zeros([1, 4, 4, 3]))


def dense(net, images, num_classes):
    with net.scope("tiny_net"):
        return net.dense(net.flatten(images), num_classes, scope="logits")


def test_the_scope_of_a_network_is_that_of_its_variables(register):
    message = (
        "The network 'tiny' has Network(scope='tiny') and created the variable 'tiny_net/logits/weights', which is not"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        register(dense)(tf.zeros([1, 4, 4, 3]))


@pytest.mark.parametrize("scope", ["", "tiny_net"])
def test_a_network_in_the_scope_of_a_user(register, scope):
    with tf.variable_scope("outer"):
        register(dense, scope)(tf.zeros([1, 4, 4, 3]))
    assert [variable.op.name for variable in tf.global_variables()] == [
        "outer/tiny_net/logits/weights",
        "outer/tiny_net/logits/biases",
    ]


# --- NCHW -------------------------------------------------------------------------------------------------------------
