"""Images on their way into a network: wrong ones are refused with what would be right, right ones come in unchanged."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.images import DEFAULT_PREPROCESSING, ImageInput, check_size
from moxing.tensorflow.network_registry import network

LENET = network("lenet")


def sized(name, x, height=None, width=None):
    return ImageInput(name, network(name), height=height, width=width).sized(x)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def images(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape)


# --- shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "height", "width", "expected"),
    [
        ([2, 28, 30, 1], None, None, [2, 28, 30, 1]),
        ([2, 28, 30, 1], 28, 30, [2, 28, 30, 1]),
        ([None, None, None, 1], None, None, [None, None, None, 1]),
        ([None, None, None, 1], 28, 30, [None, 28, 30, 1]),
        ([None, None, 30, 1], 28, None, [None, 28, 30, 1]),
        ([None, 28, None, 1], None, 30, [None, 28, 30, 1]),
        ([None, None, None, 1], 28, None, [None, 28, None, 1]),
        ([None, 28, None, 3], 28, 30, [None, 28, 30, 3]),
    ],
)
def test_a_size_that_is_given_becomes_known(shape, height, width, expected):
    assert sized("lenet", images(*shape), height, width).shape.as_list() == expected


def test_a_shape_that_is_not_known_at_all():
    unknown = tf.placeholder(tf.float32)
    assert sized("lenet", unknown, 28, 30).shape.as_list() == [None, 28, 30, 1]
    with pytest.raises(ValueError, match="lenet was given images of shape <unknown>.*`image_height` and `image_width`"):
        sized("lenet", unknown, 28, None)


def test_a_known_size_adds_nothing_to_the_graph():
    x = images(2, 28, 28, 1)
    assert sized("lenet", x, 28, 28) is x


def test_a_given_size_is_checked_when_it_runs():
    x = images(None, None, None, 1)
    y = sized("lenet", x, 28, 28)
    with tf.Session() as session:
        assert session.run(y, {x: np.zeros([1, 28, 28, 1])}).shape == (1, 28, 28, 1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not compatible with expected shape"):
            session.run(y, {x: np.zeros([1, 28, 29, 1])})


@pytest.mark.parametrize(
    ("shape", "height", "width", "message"),
    [
        ([28, 28, 1], None, None, "lenet was given images of shape (28, 28, 1): expected [batch, height, width, "
            "channels]. One image becomes a batch with tf.expand_dims(image, 0)."),
        ([28], None, None, "lenet was given images of shape (28,): expected [batch, height, width, channels]."),
        ([2, 3, 28, 28, 1], None, None, "lenet was given images of shape (2, 3, 28, 28, 1): expected [batch"),
        ([2, 28, 28, None], None, None, "the number of channels must be known; "
            "call images.set_shape([None, None, None, 1])."),
        ([2, 28, 28, 1], 32, None, "get_model_fn(image_height=32): lenet was given images of shape (2, 28, 28, 1)."),
        ([2, 28, 28, 1], 28, 32, "get_model_fn(image_width=32): lenet was given images of shape (2, 28, 28, 1)."),
        ([2, None, 28, 1], 28, 32, "get_model_fn(image_width=32): lenet was given images of shape (2, None, 28, 1)."),
    ],
)  # fmt: skip
def test_wrong_shapes(shape, height, width, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        sized("lenet", images(*shape), height, width)


@pytest.mark.parametrize("dtype", [tf.string, tf.bool, tf.complex64])
def test_what_is_no_number(dtype):
    with pytest.raises(TypeError, match=f"lenet was given images of type {dtype.name}: expected numbers"):
        sized("lenet", images(2, 28, 28, 1, dtype=dtype), None, None)


def test_arrays_become_tensors():
    x = sized("lenet", np.zeros([2, 28, 28, 1], "uint8"), None, None)
    assert x.dtype == tf.uint8 and x.shape == [2, 28, 28, 1]


@pytest.mark.parametrize(("height", "width", "wrong"), [(3, 28, "height 3"), (28, 3, "width 3"), (None, 0, "width 0")])
def test_too_small(height, width, wrong):
    message = (
        f"lenet was given images of {wrong}: its layers need at least 4 x 4 pixels (it was published with 28 x 28)."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        check_size("lenet", LENET, height, width)
    check_size("lenet", LENET, 4, 4)
    check_size("lenet", LENET, None, None)


@pytest.mark.parametrize("built_format", ["NHWC", "NCHW"])
def test_the_size_that_is_built_on(built_format):
    def build(height, width, size_required=False):
        image_input = ImageInput("lenet", LENET, built_format=built_format, size_required=size_required)
        return image_input(images(1, height, width, 1)).shape

    assert build(4, 4, size_required=True) == ([1, 1, 4, 4] if built_format == "NCHW" else [1, 4, 4, 1])
    assert build(None, None).rank == 4
    with pytest.raises(ValueError, match="of height 3: its layers need at least 4 x 4"):
        build(3, 4)
    with pytest.raises(ValueError, match="of width 3: its layers need at least 4 x 4"):
        build(None, 3)
    for size in ((None, 28), (28, None)):
        with pytest.raises(
            ValueError, match=r"`image_height` and `image_width` should be given .* `mox.ModeKeys.EXPORT`"
        ):
            build(*size, size_required=True)


# --- preprocessing ----------------------------------------------------------------------------------------------------


def prepare(x, preprocess_fn=DEFAULT_PREPROCESSING, data_format="NHWC", built_format="NHWC", name="resnet_v1_50"):
    image_input = ImageInput(
        name, network(name), preprocess_fn=preprocess_fn, data_format=data_format, built_format=built_format
    )
    return image_input.preprocessed(x)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.bfloat16])
@pytest.mark.parametrize("preprocess_fn", [DEFAULT_PREPROCESSING, None])
def test_floating_point_images_stay(dtype, preprocess_fn):
    x = images(2, 8, 8, 3, dtype=dtype)
    assert prepare(x, preprocess_fn) is x


def test_float64_is_refused_for_what_batch_normalisation_cannot_do():
    for preprocess_fn in (DEFAULT_PREPROCESSING, None):
        with pytest.raises(
            TypeError, match=r"resnet_v1_50 was given images of type float64.*tf.cast\(images, tf.float32\)"
        ):
            prepare(images(2, 8, 8, 3, dtype=tf.float64), preprocess_fn)
    with pytest.raises(TypeError, match="preprocess_fn returned images of type float64"):
        prepare(images(2, 8, 8, 3), lambda x, mode: tf.cast(x, tf.float64))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet_v1_50", [[255 - 123.68, 0 - 116.78, 10 - 103.94]]),
        ("inception_v3", [[1.0, -1.0, 10 / 127.5 - 1]]),
        ("pvanet", [[255 - 123.68, 0 - 116.78, 10 - 103.94]]),
        ("lenet", [[127 / 128, -1.0, 10 / 128 - 1]]),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_pixels_come_into_the_scale_of_the_network(name, expected, dtype):
    with tf.Session() as session:
        found = session.run(prepare(tf.constant(np.array([[[[255, 0, 10]]]], dtype)), name=name))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_pixels_of_another_number_of_channels_than_the_means(channels):
    with pytest.raises(ValueError, match=rf"resnet_v1_50 was given images of type uint8 with {channels} channel\(s\)"):
        prepare(images(2, 8, 8, channels, dtype=tf.uint8))
    assert prepare(images(2, 8, 8, channels)).shape == [2, 8, 8, channels]
    assert prepare(images(2, 8, 8, channels, dtype=tf.uint8), name="cifarnet").shape == [2, 8, 8, channels]


def test_no_preprocessing_for_whole_numbers():
    with pytest.raises(
        TypeError, match="resnet_v1_50 was given images of type uint8 and preprocess_fn=None; expected float"
    ):
        prepare(images(2, 8, 8, 3, dtype=tf.uint8), None)


def test_a_function_is_given_images_and_mode_as_they_are():
    calls = []
    x = images(2, 8, 8, 3, dtype=tf.uint8)

    def preprocess_fn(*arguments):
        calls.append(arguments)
        return tf.cast(arguments[0], tf.float32) / 255

    assert prepare(x, preprocess_fn).dtype == tf.float32
    assert calls == [(x, "TRAIN")]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: x[0], r"preprocess_fn returned images of shape \(8, 9, 3\); expected four axes, NHWC"),
        (lambda x: tf.cast(x, tf.uint8), "preprocess_fn returned images of type uint8; expected float"),
        (
            lambda x: tf.transpose(x, [0, 3, 1, 2]),
            r"returned shape \(2, 3, 8, 9\) for images of shape \(2, 8, 9, 3\). Do not",
        ),
        # Grey, and transposed: no axis has the three channels of before, but the size gives it away.
        (lambda x: tf.transpose(x[..., :1], [0, 3, 1, 2]), r"returned shape \(2, 1, 8, 9\).*Do not transpose"),
        (lambda x: tf.placeholder_with_default(x, [2, 8, 9, None]), "the number of channels must be known"),
    ],
)
def test_what_a_function_must_not_return(returned, message):
    with pytest.raises((ValueError, TypeError), match=message):
        prepare(images(2, 8, 9, 3), lambda x, mode: returned(x))


@pytest.mark.parametrize(
    "returned", [lambda x: x, lambda x: x * 2, lambda x: x[..., :1], lambda x: tf.image.grayscale_to_rgb(x[..., :1])]
)
def test_for_nchw_a_function_has_to_transpose(returned):
    with pytest.raises(ValueError, match=r"End it with `return tf.transpose\(images, \[0, 3, 1, 2\]\)`"):
        prepare(images(2, 8, 9, 3), lambda x, mode: returned(x), "NCHW")
    turned = lambda x, mode: tf.transpose(returned(x), [0, 3, 1, 2])  # noqa: E731
    channels = returned(images(2, 8, 9, 3)).shape[3]
    assert prepare(images(2, 8, 9, 3), turned, "NCHW", "NHWC").shape == [2, 8, 9, channels]
    assert prepare(images(2, 8, 9, 3), turned, "NCHW", "NCHW").shape == [2, channels, 8, 9]


def test_other_sizes_and_depths_that_a_function_may_make():
    x = images(2, 8, 9, 3)
    assert prepare(x, lambda x, mode: tf.image.resize(x, [5, 6])).shape == [2, 5, 6, 3]
    assert prepare(x, lambda x, mode: tf.image.rgb_to_grayscale(x)).shape == [2, 8, 9, 1]
    assert prepare(images(2, 8, 9, 1), lambda x, mode: tf.image.grayscale_to_rgb(x)).shape == [2, 8, 9, 3]


@pytest.mark.parametrize("built", ["NHWC", "NCHW"])
def test_the_order_of_axes_that_is_built(built):
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 3)).astype("float32")
    expected = x.transpose(0, 3, 1, 2) if built == "NCHW" else x
    with tf.Session() as session:
        for preprocess_fn, data_format in (
            (DEFAULT_PREPROCESSING, "NCHW"),
            (None, "NCHW"),
            (lambda t, mode: tf.transpose(t, [0, 3, 1, 2]), "NCHW"),
            (lambda t, mode: t, "NHWC"),
        ):
            np.testing.assert_array_equal(
                session.run(prepare(tf.constant(x), preprocess_fn, data_format, built)), expected
            )


def test_the_default_is_shown_as_such():
    assert repr(DEFAULT_PREPROCESSING) == "<default>"


def test_images_that_were_transposed_by_hand():
    with pytest.raises(ValueError, match=r"\(2, 3, 64, 64\), which look like NCHW.*tf.transpose"):
        sized("resnet_v1_50", images(2, 3, 64, 64), None, None)


def test_preprocess_fn_of_another_form():
    for function, error, text in (
        (lambda x: x, TypeError, r"preprocess_fn\(images, run_mode\): too many positional arguments"),
        (lambda x, run_mode: None, ValueError, "preprocess_fn returned None; end it with `return images`"),
    ):
        with pytest.raises(error, match=text):
            prepare(images(2, 28, 28, 1), function, name="lenet")
