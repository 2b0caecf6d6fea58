"""One interface for an image that is decoded and one that is not: a pipeline written once decodes only what it uses."""

from __future__ import annotations

import abc
import copy
import functools
from collections.abc import Callable
from typing import TypeAlias

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import decoding

#: A number of pixels: known when the graph is built, or an int32 scalar.
Pixels: TypeAlias = int | tf.Tensor

_RATIOS = (1, 2, 4, 8)  # the scales at which libjpeg decodes
# Decoding a window, libjpeg does not know the colour beyond its left and right edge (colour is often stored at half
# the resolution and interpolated). Two pixels more on each side, cut off afterwards, give exactly the pixels of the
# whole image; without them the edge columns differ by up to 83 of 255.
_MARGIN = 2


class Picture(abc.ABC):
    """An image of which a part can be taken.

    Attributes:
      height: an int32 scalar tensor.
      width: an int32 scalar tensor.
      channels: 1 or 3 for an encoded image, whatever it has for a decoded one.
    """

    height: tf.Tensor
    width: tf.Tensor
    channels: int

    @abc.abstractmethod
    def whole(self) -> tf.Tensor:
        """All pixels, [height, width, channels]."""

    @abc.abstractmethod
    def window(self, top: Pixels, left: Pixels, height: Pixels, width: Pixels) -> tf.Tensor:
        """The pixels of a window, [height, width, channels]. It must lie inside the picture."""

    @abc.abstractmethod
    def shrunk(self, height: Pixels, width: Pixels) -> Picture:
        """The picture at 1/2, 1/4 or 1/8 if that is less work: the smallest of at least `height` x `width` pixels.

        Sides are rounded up, as libjpeg does. A picture for which there is nothing to save returns itself.
        """


class DecodedPicture(Picture):
    """Pixels that are there already. `shrunk` returns the picture itself: there is nothing to save.

    Args:
      image: a tensor [height, width, channels] of any type, which it keeps.

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

    def whole(self) -> tf.Tensor:
        return self._image

    def window(self, top: Pixels, left: Pixels, height: Pixels, width: Pixels) -> tf.Tensor:
        return _slice(self._image, top, left, height, width)

    def shrunk(self, height: Pixels, width: Pixels) -> Picture:
        return self


class EncodedPicture(Picture):
    """The bytes of an image. Height and width come from its header; of a JPEG only what is asked for is decoded.

    Windows of JPEGs have the same pixels as the window of the whole decoded image. Only JPEGs shrink.

    Args:
      encoded: a scalar string tensor, the whole file; see `decoding.decode_image` for the formats and the rules.
      channels: 3 for RGB, 1 for grey.
      max_pixels: largest width x height; None is the flag `max_image_pixels`.

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
        # One that was cut is decoded whole, so that it is refused whichever part of it is wanted.
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
        """`jpeg(ratio)` or `other()`, as the header says. Either runs after the check of the size in the header."""
        if self._scale is None:
            return tf.cond(self._is_jpeg, lambda: jpeg(1), other)
        scale = tf.where(self._is_jpeg, self._scale, len(_RATIOS))

        def unusual() -> tf.Tensor:
            return tf.switch_case(scale - 1, [*(functools.partial(jpeg, ratio) for ratio in _RATIOS[1:]), other])

        # Most pictures are JPEGs that are not shrunk, and a case of five costs more than half of a decoding.
        return tf.cond(tf.equal(scale, 0), lambda: jpeg(1), unusual)

    def _jpeg(self, crop: tf.Tensor | None, ratio: int) -> tf.Tensor:
        return decoding.decode_jpeg(self._encoded, self.channels, self._header.jpeg_components, crop, ratio)

    def _other(self) -> tf.Tensor:
        return decoding.decode_image(self._encoded, self.channels, self._limit)


def _slice(image: tf.Tensor, top: Pixels, left: Pixels, height: Pixels, width: Pixels) -> tf.Tensor:
    """A window. Unlike `image[top:top + height]`, which takes what there is, it fails outside the image."""
    window = tf.slice(image, tf.stack([top, left, 0]), tf.stack([height, width, -1]))
    window.set_shape([tf.get_static_value(height), tf.get_static_value(width), image.shape[2]])
    return window


def _divide(length: tf.Tensor, ratio: Pixels) -> tf.Tensor:
    """`length` / `ratio`, rounded up."""
    return -(-length // ratio)
