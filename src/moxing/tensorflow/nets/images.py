"""The images that come into a network: their shape, their scale, the order of their axes."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.network import Network
from moxing.tensorflow.preprocessing.preprocessing_factory import normalise_pixels

#: "The preprocessing of the network itself", where None has a meaning of its own.
DEFAULT_PREPROCESSING: Any = type("DefaultPreprocessing", (), {"__repr__": lambda self: "<default>"})()

#: Batch normalisation has no kernel for float64.
_COMPUTABLE = (tf.float32, tf.float16, tf.bfloat16)


def sized(name: str, network: Network, images: Any, height: int | None, width: int | None) -> tf.Tensor:
    """The images as a tensor [batch, height, width, channels] whose size is known as far as it can be.

    Args:
      name: the network's name.
      network: the network.
      images: what the script passed.
      height: `image_height`, or None.
      width: `image_width`, or None.

    Raises:
      ValueError: not images, or of another size than the arguments say.
      TypeError: not numbers.
    """
    images = tf.convert_to_tensor(images)
    if not (images.dtype.is_integer or images.dtype.is_floating):
        raise TypeError(
            f"{name} was given images of type {images.dtype.name}: expected numbers. Bytes of a file are decoded "
            "first, for example with tf.image.decode_jpeg(..., channels=3)."
        )
    if images.shape.rank is None and None not in (height, width):
        images = tf.ensure_shape(images, [None, height, width, network.channels])
    shape = images.shape
    if shape.rank != 4:
        advice = {
            3: " One image becomes a batch with tf.expand_dims(image, 0).",
            None: " `image_height` and `image_width` of `mox.get_model_fn` tell it, or images.set_shape.",
        }
        raise ValueError(
            f"{name} was given images of shape {shape}: expected [batch, height, width, channels]."
            + advice.get(shape.rank, "")
        )
    if shape.as_list()[3] is None:
        raise ValueError(
            f"{name} was given images of shape {shape}: the number of channels must be known; "
            f"images.set_shape([None, None, None, {network.channels}]) tells it."
        )
    _, first, second, channels = shape.as_list()
    if first in (1, 3) and channels > 4 and channels == second:
        raise ValueError(
            f"{name} was given images of shape {shape}, which look like NCHW: the images are NHWC whatever data_format "
            "is; the network transposes them itself. Leave the tf.transpose out."
        )
    return _with_size(name, images, height, width)


def check_built(name: str, network: Network, x: tf.Tensor, data_format: str, mode: str) -> None:
    """Raises a ValueError where `x`, what the network is built on, is too small, or in EXPORT of unknown size."""
    height, width = x.shape.as_list()[2:] if data_format == "NCHW" else x.shape.as_list()[1:3]
    if mode == "EXPORT" and None in (height, width):
        # The names are what a script of the original reads in the error.
        raise ValueError(
            f"{name}: `image_height` and `image_width` should be given to `mox.get_model_fn` when `run_mode` is "
            f"`mox.ModeKeys.EXPORT`, because the images have shape {x.shape}. For example "
            f"image_height={network.image_size}, image_width={network.image_size}."
        )
    check_size(name, network, height, width)


def check_size(name: str, network: Network, height: int | None, width: int | None) -> None:
    """Raises a ValueError where images are smaller than the network's layers need.

    Example:
      >>> from moxing.tensorflow.nets.catalogue import NetworkKeys, network
      >>> check_size('resnet_v1_50', network(NetworkKeys.RESNET_V1_50), 64, 64)
    """
    for argument, length in (("height", height), ("width", width)):
        if length is not None and length < network.smallest:
            raise ValueError(
                f"{name} was given images of {argument} {length}: its layers need at least {network.smallest} x "
                f"{network.smallest} pixels (it was published with {network.image_size} x {network.image_size})."
            )


def _with_size(name: str, images: tf.Tensor, height: int | None, width: int | None) -> tf.Tensor:
    batch, known_height, known_width, channels = images.shape.as_list()
    for argument, given, known in (("image_height", height, known_height), ("image_width", width, known_width)):
        if given is not None and known is not None and given != known:
            raise ValueError(
                f"get_model_fn({argument}={given!r}): {name} was given images of shape {images.shape}. "
                f"Leave {argument} out, or resize the images with tf.image.resize_images."
            )
    if known_height is None or known_width is None:
        shape = [batch, known_height or height, known_width or width, channels]
        # Checked when it runs as well: a server may be sent anything.
        return tf.ensure_shape(images, shape) if shape != images.shape.as_list() else images
    return images


def prepared(
    name: str, images: tf.Tensor, preprocess_fn: Any, run_mode: Any, data_format: str, built_format: str
) -> tf.Tensor:
    """The images after `preprocess_fn`, in the order of axes that the network is built with.

    Args:
      name: the network's name.
      images: [batch, height, width, channels].
      preprocess_fn: see `mox.get_model_fn`.
      run_mode: handed to `preprocess_fn`.
      data_format: what the script asked for, and so what its own `preprocess_fn` returns.
      built_format: what the network is built with.
    """
    if preprocess_fn is DEFAULT_PREPROCESSING:
        result = _normalised(name, images) if not images.dtype.is_floating else images
    elif preprocess_fn is None:
        result = images
    else:
        result = _preprocessed(name, images, preprocess_fn, run_mode)
        _check_result(name, images, result, data_format)
        return _transposed(result, data_format, built_format)
    if result.dtype not in _COMPUTABLE:
        raise TypeError(
            f"{name} was given images of type {images.dtype.name}"
            + (" and preprocess_fn=None" if preprocess_fn is None else "")
            + "; expected float32, float16 or bfloat16 in the scale that the network was trained with, for example "
            "tf.cast(images, tf.float32)."
        )
    return _transposed(result, "NHWC", built_format)


def _normalised(name: str, images: tf.Tensor) -> tf.Tensor:
    channels = images.shape.as_list()[3]
    try:
        result = normalise_pixels(name, images)
    except ValueError:
        # The means of three channels cannot be subtracted from four.
        result = None
    # From one they can: what comes out has three.
    if result is None or result.shape.as_list()[3] != channels:
        raise ValueError(
            f"{name} was given images of type {images.dtype.name} with {channels} channel(s): its preprocessing knows "
            "red, green and blue. tf.image.grayscale_to_rgb(images) makes them from grey ones, images[..., :3] drops "
            "an alpha channel, and preprocess_fn replaces the preprocessing."
        )
    return result


def _preprocessed(name: str, images: tf.Tensor, preprocess_fn: Any, run_mode: Any) -> tf.Tensor:
    try:
        inspect.signature(preprocess_fn).bind(images, run_mode)
    except TypeError as error:
        raise TypeError(f"{name}: preprocess_fn is called as preprocess_fn(images, run_mode): {error}.") from None
    except ValueError:
        pass  # a function of C has no signature to look at
    result = preprocess_fn(images, run_mode)
    if result is None:
        raise ValueError(f"{name}: preprocess_fn returned None; end it with `return images`.")
    return tf.convert_to_tensor(result)


def _check_result(name: str, images: tf.Tensor, result: tf.Tensor, data_format: str) -> None:
    shape = result.shape
    if shape.rank != 4:
        raise ValueError(f"{name}: preprocess_fn returned images of shape {shape}; expected four axes, {data_format}.")
    if result.dtype not in _COMPUTABLE:
        raise TypeError(
            f"{name}: preprocess_fn returned images of type {result.dtype.name}; expected float32, float16 or bfloat16."
        )
    *size, channels = images.shape.as_list()[1:]
    axis = 1 if data_format == "NCHW" else 3
    if shape.as_list()[axis] == channels:
        return
    # By their size too: the function may have made three channels of one.
    size_if_other = shape.as_list()[1:3] if data_format == "NCHW" else shape.as_list()[2:]
    if shape.as_list()[4 - axis] == channels or (None not in size and size_if_other == size):
        raise ValueError(
            f"{name}: with data_format={data_format!r} a preprocess_fn returns its images as {data_format}, but it "
            f"returned shape {shape} for images of shape {images.shape}. "
            + (
                "End it with `return tf.transpose(images, [0, 3, 1, 2])`."
                if data_format == "NCHW"
                else "Do not transpose them, or pass data_format='NCHW'."
            )
        )
    if shape.as_list()[axis] is None:
        raise ValueError(
            f"{name}: preprocess_fn returned images of shape {shape}; the number of channels must be known."
        )


def _transposed(images: tf.Tensor, have: str, want: str) -> tf.Tensor:
    if have == want:
        return images
    return tf.transpose(images, [0, 3, 1, 2] if want == "NCHW" else [0, 2, 3, 1])
