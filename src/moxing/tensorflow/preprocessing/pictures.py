"""One interface to decoded and encoded images, so that a pipeline decodes only the part of an image that it uses."""

from __future__ import annotations

import abc
import copy
import functools
from collections.abc import Callable
from typing import TypeAlias

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import decoding

#: A number of pixels: an int, or an int32 scalar tensor.
Pixels: TypeAlias = int | tf.Tensor

_RATIOS = (1, 2, 4, 8)  # the scales at which libjpeg decodes
# When libjpeg decodes a window, it lacks the colour beyond the left and right edge (colour is often stored at half the
# resolution and interpolated). Two more pixels on each side, cropped afterwards, give exactly the pixels of the whole
# image; without them the edge columns differ by up to 83 of 255.
_MARGIN = 2


class Picture(abc.ABC):
    """An image from which windows can be cut.

    Attributes:
      height: an int32 scalar tensor.
      width: an int32 scalar tensor.
      channels: 1 or 3 for an encoded image, any number for a decoded one.
      origin: a tensor that depends on the image, to look up the seed of its sample.
    """

    height: tf.Tensor
    width: tf.Tensor
    channels: int
    origin: tf.Tensor

    @abc.abstractmethod
    def whole(self) -> tf.Tensor:
        """Returns all pixels, [height, width, channels]."""

    @abc.abstractmethod
    def window(self, top: Pixels, left: Pixels, height: Pixels, width: Pixels) -> tf.Tensor:
        """Returns the pixels of a window, [height, width, channels]. It must lie inside the picture."""

    @abc.abstractmethod
    def shrunk(self, height: Pixels, width: Pixels) -> Picture:
        """Returns the picture at 1, 1/2, 1/4 or 1/8 of its size: the smallest with at least `height` x `width` pixels.

        Sides are rounded up, as in libjpeg. A picture that would not be decoded faster returns itself.
        """

    def scaled_size(self, shorter_side: Pixels) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the height and width after scaling the shorter side to `shorter_side`, as int32 scalars.

        Example:
          >>> with tf.Graph().as_default(), tf.Session() as session:
          ...     height, width = session.run(DecodedPicture(tf.zeros([375, 500, 3])).scaled_size(256))
          >>> int(height), int(width)
          (256, 341)
        """
        height, width = tf.cast(self.height, tf.float32), tf.cast(self.width, tf.float32)
        scale = tf.cast(shorter_side, tf.float32) / tf.minimum(height, width)
        return tf.cast(tf.rint(height * scale), tf.int32), tf.cast(tf.rint(width * scale), tf.int32)


class DecodedPicture(Picture):
    """A decoded image. `shrunk` returns the picture itself.

    Args:
      image: a tensor [height, width, channels] of any type. Windows have the same type.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     picture = DecodedPicture(tf.reshape(tf.range(6), [2, 3, 1]))
      ...     session.run(picture.window(1, 1, 1, 2)).tolist()
      [[[4], [5]]]
    """

    def __init__(self, image: tf.Tensor) -> None:
        self._image = tf.convert_to_tensor(image)
        shape = self._image.shape
        if shape.rank != 3 or tf.compat.dimension_value(shape[2]) is None:
            raise ValueError(f"image={image!r}: expected [height, width, channels] with a known number of channels.")
        self.channels = tf.compat.dimension_value(shape[2])
        size = tf.shape(self._image)
        self.height, self.width = size[0], size[1]
        self.origin = self._image  # not the height, which may be a constant

    def whole(self) -> tf.Tensor:
        return self._image

    def window(self, top: Pixels, left: Pixels, height: Pixels, width: Pixels) -> tf.Tensor:
        return _slice(self._image, top, left, height, width)

    def shrunk(self, height: Pixels, width: Pixels) -> Picture:
        return self


class EncodedPicture(Picture):
    """An encoded image. Height and width come from its header; of a JPEG only the window is decoded.

    The window of a JPEG has the same pixels as that window of the whole decoded image. Only JPEGs shrink.

    Args:
      encoded: a scalar string tensor, the whole file; see `decoding.decode_image` for the formats and the rules.
      channels: 3 for RGB, 1 for grey.
      max_pixels: the largest width x height; None uses the flag `max_image_pixels`.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     picture = EncodedPicture(tf.image.encode_jpeg(tf.zeros([101, 60, 3], tf.uint8)))
      ...     small = picture.shrunk(25, 15)
      ...     [session.run(tf.shape(pixels)).tolist() for pixels in (picture.window(5, 5, 9, 8), small.whole())]
      [[9, 8, 3], [26, 15, 3]]
    """

    def __init__(self, encoded: tf.Tensor, channels: int = 3, max_pixels: int | None = None) -> None:
        self._encoded = decoding.check_arguments(encoded, channels)
        self.channels = channels
        self._limit = decoding.pixel_limit(max_pixels)
        self._header = decoding.read_header(self._encoded, self._limit)
        self.height, self.width = self._header.height, self._header.width
        self.origin = self.height
        # A truncated JPEG is decoded whole, so that it is rejected whichever window is used.
        self._is_jpeg = (self._header.jpeg_components > 0) & decoding.is_jpeg_complete(self._encoded)
        self._scale: tf.Tensor | None = None  # index into _RATIOS; None is 0, known when the graph is built

    def whole(self) -> tf.Tensor:
        return self._decode(lambda ratio: self._jpeg(None, ratio), self._other)

    def window(self, top: Pixels, left: Pixels, height: Pixels, width: Pixels) -> tf.Tensor:
        def jpeg(ratio: int) -> tf.Tensor:
            first = tf.maximum(left - _MARGIN, 0)
            end = tf.minimum(left + width + _MARGIN, self.width)
            strip = self._jpeg(tf.stack([top, first, height, end - first]), ratio)
            return _slice(strip, 0, left - first, height, width)

        return self._decode(jpeg, lambda: _slice(self._other(), top, left, height, width))

    def shrunk(self, height: Pixels, width: Pixels) -> Picture:
        full_height, full_width = self._header.height, self._header.width
        fits = [
            self._is_jpeg & (_divide(full_height, ratio) >= height) & (_divide(full_width, ratio) >= width)
            for ratio in _RATIOS[1:]
        ]
        scale = tf.add_n([tf.cast(fit, tf.int32) for fit in fits])
        small = copy.copy(self)
        small._scale = scale if self._scale is None else tf.maximum(scale, self._scale)
        ratio = tf.gather(_RATIOS, small._scale)
        small.height, small.width = _divide(full_height, ratio), _divide(full_width, ratio)
        return small

    def _decode(self, jpeg: Callable[[int], tf.Tensor], other: Callable[[], tf.Tensor]) -> tf.Tensor:
        """Returns `jpeg(ratio)` or `other()`, by the format. Both run after the check of the size in the header."""
        if self._scale is None:
            return tf.cond(self._is_jpeg, lambda: jpeg(1), other)
        scale = tf.where(self._is_jpeg, self._scale, len(_RATIOS))

        def unusual() -> tf.Tensor:
            return tf.switch_case(scale - 1, [*(functools.partial(jpeg, ratio) for ratio in _RATIOS[1:]), other])

        # Most pictures are JPEGs that are not shrunk, and a switch of five cases costs more than half of the decoding.
        return tf.cond(tf.equal(scale, 0), lambda: jpeg(1), unusual)

    def _jpeg(self, crop: tf.Tensor | None, ratio: int) -> tf.Tensor:
        return decoding.decode_jpeg(self._encoded, self.channels, self._header.jpeg_components, crop, ratio)

    def _other(self) -> tf.Tensor:
        return decoding.decode_image(self._encoded, self.channels, self._limit)


def _slice(image: tf.Tensor, top: Pixels, left: Pixels, height: Pixels, width: Pixels) -> tf.Tensor:
    """Returns a window of an image. Fails outside the image, unlike `image[top:top + height]`, which truncates."""
    window = tf.slice(image, tf.stack([top, left, 0]), tf.stack([height, width, -1]))
    window.set_shape([tf.get_static_value(height), tf.get_static_value(width), image.shape[2]])
    return window


def _divide(length: tf.Tensor, ratio: Pixels) -> tf.Tensor:
    """Returns `length` / `ratio`, rounded up."""
    return -(-length // ratio)
