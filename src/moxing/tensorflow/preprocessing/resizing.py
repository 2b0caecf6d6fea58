"""Resizes, crops and pads pictures; decodes only the part of a picture that the result needs.

Bilinear resizing is TensorFlow 1's, on which the published weights were trained: output row i of n, of an image with
h rows, is read at position p = i * h / n, between rows floor(p) and floor(p) + 1 (or the last row), without half-pixel
centres and without antialiasing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing.pictures import Picture


def resize_bilinear(image: tf.Tensor, height: Any, width: Any) -> tf.Tensor:
    """Resizes `image` [h, w, c] of any numeric type to float32 [height, width, c], as TensorFlow 1 does.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     print(session.run(resize_bilinear(tf.constant([[[0], [10]]], tf.uint8), 1, 4))[0, :, 0])
      [ 0.  5. 10. 10.]
    """
    images = tf.expand_dims(image, 0)
    return tf.squeeze(tf.raw_ops.ResizeBilinear(images=images, size=tf.stack([height, width])), [0])


def resize_and_crop(
    picture: Picture,
    resized: tuple[Any, Any],
    corner: tuple[Any, Any],
    size: tuple[int, int],
    flipped: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns a crop of the resized picture, without resizing or decoding the rest.

    Args:
      picture: the picture.
      resized: the height and width to which the whole picture would be resized.
      corner: top and left of the crop, in the resized picture.
      size: the height and width of the crop.
      flipped: a bool scalar: whether to flip the crop left to right.

    Returns:
      float32 [*size, channels].

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     picture = DecodedPicture(tf.reshape(tf.range(4.0), [1, 4, 1]))
      ...     print(session.run(resize_and_crop(picture, (1, 8), (0, 3), (1, 3)))[0, :, 0])
      [1.5 2.  2.5]
    """
    rows = _samples(picture.height, resized[0], corner[0], size[0])
    columns = _samples(picture.width, resized[1], corner[1], size[1], flipped)
    window = picture.window(rows.first, columns.first, rows.count, columns.count)
    # Two axes at a time, and bytes for as long as possible: a third axis to broadcast over, or floats from the start,
    # cost more than the arithmetic.
    lines = tf.reshape(window, [rows.count, columns.count * picture.channels])
    lines = _between(tf.gather(lines, rows.low), tf.gather(lines, rows.high), rows.fraction[:, None])
    pixels = tf.reshape(lines, [size[0], columns.count, picture.channels])
    left, right = (
        tf.reshape(tf.gather(pixels, index, axis=1), [size[0], size[1] * picture.channels])
        for index in (columns.low, columns.high)
    )
    fractions = tf.reshape(tf.tile(columns.fraction[:, None], [1, picture.channels]), [-1])
    return tf.reshape(_between(left, right, fractions), [*size, picture.channels])


def crop_and_resize(
    picture: Picture, resized: tuple[Any, Any], corner: tuple[Any, Any], size: tuple[int, int]
) -> tf.Tensor:
    """Approximates `resize_and_crop`, three times as fast: the crop is aligned to the pixels of the picture.

    It begins and ends less than a pixel of the picture from the exact position, which does not matter for a random
    crop.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     picture = DecodedPicture(tf.reshape(tf.range(4.0), [1, 4, 1]))
      ...     print(session.run(crop_and_resize(picture, (1, 8), (0, 4), (1, 4)))[0, :, 0])
      [2.  2.5 3.  3. ]
    """
    rows = _whole_lines(picture.height, resized[0], corner[0], size[0])
    columns = _whole_lines(picture.width, resized[1], corner[1], size[1])
    window = picture.window(rows[0], columns[0], rows[1], columns[1])
    image = resize_bilinear(window, *size)
    image.set_shape([*size, picture.channels])
    return image


def _whole_lines(length: Any, resized: Any, start: Any, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first line and the number of lines of the crop, in the picture."""
    scale = tf.cast(length, tf.float32) / tf.cast(resized, tf.float32)
    lines = tf.clip_by_value(tf.cast(tf.rint(count * scale), tf.int32), 1, length)
    return tf.minimum(tf.cast(tf.cast(start, tf.float32) * scale, tf.int32), length - lines), lines


class _Samples(NamedTuple):
    """The positions to interpolate along one axis, between low and high in the window of `count` lines from `first`."""

    first: tf.Tensor
    count: tf.Tensor
    low: tf.Tensor
    high: tf.Tensor
    fraction: tf.Tensor


def _samples(length: Any, resized: Any, start: Any, count: int, flipped: tf.Tensor | None = None) -> _Samples:
    # float32 throughout, in the order of TensorFlow's own kernel, so that the positions are bitwise equal.
    scale = tf.cast(length, tf.float32) / tf.cast(resized, tf.float32)
    position = tf.cast(start + tf.range(count), tf.float32) * scale
    low = tf.cast(tf.floor(position), tf.int32)
    high = tf.minimum(low + 1, length - 1)
    first = low[0]
    window = high[count - 1] - first + 1
    if flipped is not None:
        order = tf.where_v2(flipped, tf.range(count - 1, -1, -1), tf.range(count))
        position, low, high = (tf.gather(values, order) for values in (position, low, high))
    return _Samples(first, window, low - first, high - first, position - tf.floor(position))


def _between(low: tf.Tensor, high: tf.Tensor, fraction: tf.Tensor) -> tf.Tensor:
    low, high = tf.cast(low, tf.float32), tf.cast(high, tf.float32)
    return low + (high - low) * fraction


def padded_window(picture: Picture, top: Any, left: Any, height: int, width: int) -> tf.Tensor:
    """Returns a window of the picture's type that may exceed the picture, where it is padded with zeros.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     picture = DecodedPicture(tf.reshape(tf.range(1.0, 5.0), [1, 4, 1]))
      ...     print(session.run(padded_window(picture, 0, 2, 1, 4))[0, :, 0])
      [3. 4. 0. 0.]
    """
    rows = _overlap(picture.height, top, height)
    columns = _overlap(picture.width, left, width)
    inside = picture.window(rows[0], columns[0], rows[1], columns[1])
    image = tf.pad(inside, tf.stack([rows[2], columns[2], (0, 0)]))
    return tf.ensure_shape(image, [height, width, picture.channels])


def _overlap(length: tf.Tensor, start: Any, count: int) -> tuple[tf.Tensor, tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
    """Returns the first line inside the picture, the number of lines inside, and those missing before and after."""
    before = tf.maximum(-start, 0)
    after = tf.maximum(start + count - length, 0)
    return tf.maximum(start, 0), count - before - after, (before, after)


def crop_or_pad(picture: Picture, height: int, width: int) -> tf.Tensor:
    """Crops the picture to its centre, or pads it with zeros.

    Equals `tf.image.resize_image_with_crop_or_pad`: of an odd number of lines, the larger half is at the end.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     picture = DecodedPicture(tf.reshape(tf.range(1.0, 5.0), [4, 1, 1]))
      ...     print(session.run(crop_or_pad(picture, 3, 2))[:, :, 0].tolist())
      [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]
    """
    top = tf.truncatediv(picture.height - height, 2)
    left = tf.truncatediv(picture.width - width, 2)
    return padded_window(picture, top, left, height, width)
