"""The images that a network is built on: their shape, their scale, the order of their axes."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.network_registry import Network
from moxing.tensorflow.preprocessing.preprocessing_factory import normalise_pixels

#: "The preprocessing of the network itself", where None has a meaning of its own.
DEFAULT_PREPROCESSING: Any = type("DefaultPreprocessing", (), {"__repr__": lambda self: "<default>"})()

#: Batch normalisation has no kernel for float64.
_COMPUTABLE = (tf.float32, tf.float16, tf.bfloat16)


@dataclass(frozen=True)
class ImageInput:
    """Turns the images of a script into the input of a network; a call does all of it.

    Attributes:
      name: name of the network, for errors.
      network: the network.
      run_mode: the script's run mode, the second argument of `preprocess_fn`.
      preprocess_fn: see `mox.get_model_fn`.
      height: `image_height` of `mox.get_model_fn`.
      width: `image_width` of `mox.get_model_fn`.
      data_format: data format that the script asked for, and the one that its own `preprocess_fn` returns.
      built_format: data format that the network is built with.
      size_required: true if height and width must be known when the graph is built, as in EXPORT.

    Example:
      >>> from moxing.tensorflow.network_registry import network
      >>> with tf.Graph().as_default():
      ...     x = ImageInput('lenet', network('lenet'), built_format='NCHW')(tf.zeros([8, 28, 28, 1], tf.uint8))
      ...     x.shape, x.dtype.name
      (TensorShape([8, 1, 28, 28]), 'float32')
    """

    name: str
    network: Network
    run_mode: Any = "TRAIN"
    preprocess_fn: Any = DEFAULT_PREPROCESSING
    height: int | None = None
    width: int | None = None
    data_format: str = "NHWC"
    built_format: str = "NHWC"
    size_required: bool = False

    def __call__(self, images: Any) -> tf.Tensor:
        """Returns the input of the network, in its data format.

        Raises:
          ValueError: the images have a wrong shape or size.
          TypeError: the images have a wrong type.
        """
        x = self.preprocessed(self.sized(images))
        self._check_input(x)
        return x

    def sized(self, images: Any) -> tf.Tensor:
        """Returns the images as a tensor [batch, height, width, channels] of known size, as far as possible."""
        images = tf.convert_to_tensor(images)
        if not (images.dtype.is_integer or images.dtype.is_floating):
            raise TypeError(
                f"{self.name} was given images of type {images.dtype.name}: expected numbers. Bytes of a file are "
                "decoded first, for example with tf.image.decode_jpeg(..., channels=3)."
            )
        if images.shape.rank is None and None not in (self.height, self.width):
            images = tf.ensure_shape(images, [None, self.height, self.width, self.network.channels])
        self._check_shape(images.shape)
        batch, height, width, channels = images.shape.as_list()
        for argument, given, known in (("image_height", self.height, height), ("image_width", self.width, width)):
            if given is not None and known is not None and given != known:
                raise ValueError(
                    f"get_model_fn({argument}={given!r}): {self.name} was given images of shape {images.shape}. "
                    f"Leave {argument} out, or resize the images with tf.image.resize_images."
                )
        shape = [batch, height or self.height, width or self.width, channels]
        # Also checked at run time: a server may receive any size.
        return images if shape == images.shape.as_list() else tf.ensure_shape(images, shape)

    def preprocessed(self, images: tf.Tensor) -> tf.Tensor:
        """Applies `preprocess_fn` to [batch, height, width, channels] and transposes to `built_format`."""
        if self.preprocess_fn is not DEFAULT_PREPROCESSING and self.preprocess_fn is not None:
            result = self._call_preprocess_fn(images)
            self._check_result(images, result)
            return _transposed(result, self.data_format, self.built_format)
        default = self.preprocess_fn is DEFAULT_PREPROCESSING
        result = self._scaled(images) if default and not images.dtype.is_floating else images
        if result.dtype not in _COMPUTABLE:
            raise TypeError(
                f"{self.name} was given images of type {images.dtype.name}"
                f"{'' if default else ' and preprocess_fn=None'}; expected float32, float16 or bfloat16 in "
                "the scale that the network was trained with, for example tf.cast(images, tf.float32)."
            )
        return _transposed(result, "NHWC", self.built_format)

    def _check_shape(self, shape: tf.TensorShape) -> None:
        if shape.rank != 4:
            advice = {
                3: " One image becomes a batch with tf.expand_dims(image, 0).",
                None: " Set `image_height` and `image_width` of `mox.get_model_fn`, or call images.set_shape.",
            }
            raise ValueError(
                f"{self.name} was given images of shape {shape}: expected [batch, height, width, channels]."
                + advice.get(shape.rank, "")
            )
        _, height, width, channels = shape.as_list()
        if channels is None:
            raise ValueError(
                f"{self.name} was given images of shape {shape}: the number of channels must be known; "
                f"call images.set_shape([None, None, None, {self.network.channels}])."
            )
        if height in (1, 3) and channels > 4 and channels == width:
            raise ValueError(
                f"{self.name} was given images of shape {shape}, which look like NCHW: the images are NHWC whatever "
                "data_format is; the network transposes them itself. Leave the tf.transpose out."
            )

    def _check_input(self, x: tf.Tensor) -> None:
        height, width = x.shape.as_list()[2:] if self.built_format == "NCHW" else x.shape.as_list()[1:3]
        if self.size_required and None in (height, width):
            # Scripts of the original match on these names.
            raise ValueError(
                f"{self.name}: `image_height` and `image_width` should be given to `mox.get_model_fn` when `run_mode` "
                f"is `mox.ModeKeys.EXPORT`, because the images have shape {x.shape}. For example "
                f"image_height={self.network.image_size}, image_width={self.network.image_size}."
            )
        check_size(self.name, self.network, height, width)

    def _scaled(self, images: tf.Tensor) -> tf.Tensor:
        channels = images.shape.as_list()[3]
        try:
            result = normalise_pixels(self.network.preprocessing, images)
        except ValueError:  # the means of three channels cannot be subtracted from two or four
            result = None
        # From one channel they can: the result has three.
        if result is None or result.shape.as_list()[3] != channels:
            raise ValueError(
                f"{self.name} was given images of type {images.dtype.name} with {channels} channel(s): its "
                "preprocessing expects red, green and blue. Use tf.image.grayscale_to_rgb(images) for grey images, "
                "images[..., :3] to drop an alpha channel, or pass a preprocess_fn."
            )
        return result

    def _call_preprocess_fn(self, images: tf.Tensor) -> tf.Tensor:
        try:
            inspect.signature(self.preprocess_fn).bind(images, self.run_mode)
        except TypeError as error:
            raise TypeError(
                f"{self.name}: preprocess_fn is called as preprocess_fn(images, run_mode): {error}."
            ) from None
        except ValueError:
            pass  # a function written in C has no signature
        result = self.preprocess_fn(images, self.run_mode)
        if result is None:
            raise ValueError(f"{self.name}: preprocess_fn returned None; end it with `return images`.")
        return tf.convert_to_tensor(result)

    def _check_result(self, images: tf.Tensor, result: tf.Tensor) -> None:
        """Checks what `preprocess_fn` returned for `images`."""
        shape = result.shape
        if shape.rank != 4:
            raise ValueError(
                f"{self.name}: preprocess_fn returned images of shape {shape}; expected four axes, {self.data_format}."
            )
        if result.dtype not in _COMPUTABLE:
            raise TypeError(
                f"{self.name}: preprocess_fn returned images of type {result.dtype.name}; expected float32, float16 or "
                "bfloat16."
            )
        *size, channels = images.shape.as_list()[1:]
        nchw = self.data_format == "NCHW"
        channel_axis, other_channel_axis = (1, 3) if nchw else (3, 1)
        if shape.as_list()[channel_axis] == channels:
            return
        # Compare the size as well: the function may have changed the number of channels.
        size_if_other = shape.as_list()[1:3] if nchw else shape.as_list()[2:]
        if shape.as_list()[other_channel_axis] == channels or (None not in size and size_if_other == size):
            raise ValueError(
                f"{self.name}: with data_format={self.data_format!r} a preprocess_fn returns its images as "
                f"{self.data_format}, but it returned shape {shape} for images of shape {images.shape}. "
                + (
                    "End it with `return tf.transpose(images, [0, 3, 1, 2])`."
                    if nchw
                    else "Do not transpose them, or pass data_format='NCHW'."
                )
            )
        if shape.as_list()[channel_axis] is None:
            raise ValueError(
                f"{self.name}: preprocess_fn returned images of shape {shape}; the number of channels must be known."
            )


def check_size(name: str, network: Network, height: int | None, width: int | None) -> None:
    """Raises a ValueError if images are smaller than the network's layers need.

    Example:
      >>> from moxing.tensorflow.network_registry import network
      >>> check_size('resnet_v1_50', network('resnet_v1_50'), 64, 64)
    """
    for argument, length in (("height", height), ("width", width)):
        if length is not None and length < network.smallest:
            raise ValueError(
                f"{name} was given images of {argument} {length}: its layers need at least {network.smallest} x "
                f"{network.smallest} pixels (it was published with {network.image_size} x {network.image_size})."
            )


def _transposed(images: tf.Tensor, have: str, want: str) -> tf.Tensor:
    if have == want:
        return images
    return tf.transpose(images, [0, 3, 1, 2] if want == "NCHW" else [0, 2, 3, 1])
