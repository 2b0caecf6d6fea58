"""The pipeline of the Inception networks, as TF-Slim defines it.

Training:
  - a random box of the image is cropped: its aspect ratio w / h is uniform in [0.75, 1.33], its height uniform among
    those that give it 0.05 to 1 of the image's area, its position uniform; boxes of less than a tenth of the image are
    drawn again, and after 100 attempts the whole image is used;
  - the box is resized to the output: bilinearly, or without `fast_mode` by one of four methods (bilinear, nearest
    neighbour, bicubic, area; all of them TensorFlow 1's); values are then scaled to [0, 1];
  - half of the outputs are flipped;
  - a brightness from [-32/255, 32/255) is added and the saturation is multiplied by a factor from [0.5, 1.5); without
    `fast_mode` the hue is rotated by up to 0.2 of the circle and the contrast is multiplied by a factor from [0.5, 1.5)
    too, all four in one of four orders; the result is clipped to [0, 1].
`fast_mode` is on by default, as in TF-Slim's entry point `preprocess_image`.

Evaluation: the central `central_fraction` of both sides, as in `tf.image.central_crop` (floor((h - f h) / 2) rows less
at both ends), resized to the output bilinearly and scaled to [0, 1].

Both: x becomes 2 (x - 0.5), in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.pictures import Picture
from moxing.tensorflow.preprocessing.resizing import resize_bilinear

_Distortion = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

_RESIZE_METHODS = (
    tf.image.ResizeMethod.BILINEAR,
    tf.image.ResizeMethod.NEAREST_NEIGHBOR,
    tf.image.ResizeMethod.BICUBIC,
    tf.image.ResizeMethod.AREA,
)


def _brightness(image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    return tf.compat.v2.image.stateless_random_brightness(image, 32.0 / 255.0, seed)


def _saturation(image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    return tf.compat.v2.image.stateless_random_saturation(image, 0.5, 1.5, seed)


def _hue(image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    return tf.compat.v2.image.stateless_random_hue(image, 0.2, seed)


def _contrast(image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    return tf.compat.v2.image.stateless_random_contrast(image, 0.5, 1.5, seed)


_FAST_ORDER = (_brightness, _saturation)
_ORDERS = (
    (_brightness, _saturation, _hue, _contrast),
    (_saturation, _brightness, _contrast, _hue),
    (_contrast, _hue, _brightness, _saturation),
    (_hue, _saturation, _contrast, _brightness),
)


@dataclass(frozen=True)
class InceptionPreprocessing:
    """Random crop, flip and colours (training), or central crop (evaluation); resized and scaled to [-1, 1].

    Args:
      output_height: the height of the result.
      output_width: the width of the result.
      fast_mode: in training, whether to resize bilinearly and keep hue and contrast.
      central_fraction: the fraction of height and width that evaluation uses.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default():
      ...     InceptionPreprocessing(299, 299).evaluate(DecodedPicture(tf.zeros([300, 400, 3]))).shape
      TensorShape([299, 299, 3])
    """

    output_height: int
    output_width: int
    fast_mode: bool = True
    central_fraction: float = 0.875

    channels: ClassVar[int | None] = 3

    def __post_init__(self) -> None:
        if not 0.0 < self.central_fraction <= 1.0:
            raise ValueError(f"central_fraction={self.central_fraction}: expected more than 0 and at most 1.")

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor:
        """Returns the training form of `picture`."""
        for_box, for_resize, for_flip, for_colours = randomness.split(seed, 4)
        window = random_box(picture, for_box, (self.output_height, self.output_width))
        image = self._resize(window, for_resize) / 255.0
        image = tf.compat.v2.image.stateless_random_flip_left_right(image, for_flip)
        image = self._distort_colours(image, for_colours)
        return (tf.clip_by_value(image, 0.0, 1.0) - 0.5) * 2.0

    def evaluate(self, picture: Picture) -> tf.Tensor:
        """Returns the evaluation form of `picture`."""
        top, height = self._centre(picture.height)
        left, width = self._centre(picture.width)
        window = picture.window(top, left, height, width)
        return self._ensure_shape(self.normalise(resize_bilinear(window, self.output_height, self.output_width)))

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor:
        """Scales pixels from 0 to 255, of one image or a batch, as the pipeline does."""
        return (tf.cast(images, tf.float32) / 255.0 - 0.5) * 2.0

    def _centre(self, length: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # float64, as in central_crop: float32 would crop some images by one line more or less.
        exact = tf.cast(length, tf.float64)
        start = tf.cast((exact - exact * self.central_fraction) / 2.0, tf.int32)
        return start, length - 2 * start

    def _resize(self, window: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        size = [self.output_height, self.output_width]
        if self.fast_mode:
            return self._ensure_shape(resize_bilinear(window, *size))
        pixels = tf.cast(window, tf.float32)
        ways = [lambda method=method: tf.image.resize_images(pixels, size, method) for method in _RESIZE_METHODS]
        return self._ensure_shape(tf.switch_case(randomness.integer(seed, 0, len(ways) - 1), ways))

    def _distort_colours(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        for_order, *for_steps = randomness.split(seed, 1 + len(_ORDERS[0]))
        if self.fast_mode:
            return _apply(_FAST_ORDER, image, for_steps)
        ways = [lambda order=order: _apply(order, image, for_steps) for order in _ORDERS]
        return self._ensure_shape(tf.switch_case(randomness.integer(for_order, 0, len(ways) - 1), ways))

    def _ensure_shape(self, image: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(image, [self.output_height, self.output_width, 3])


def random_box(
    picture: Picture, seed: tf.Tensor, output: tuple[int, int], min_area: float = 0.05, covered: float = 0.1
) -> tf.Tensor:
    """Returns the pixels of a random box of the picture, at the lowest resolution that the output needs.

    Args:
      picture: the picture.
      seed: determines the box.
      output: the height and width to which the box will be resized.
      min_area: the smallest fraction of the picture's area.
      covered: boxes with a smaller fraction are drawn again, up to 100 times.
    """
    begin, size, _ = tf.compat.v2.image.stateless_sample_distorted_bounding_box(
        image_size=tf.stack([picture.height, picture.width, 3]),
        bounding_boxes=tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
        seed=seed,
        min_object_covered=covered,
        aspect_ratio_range=(0.75, 1.33),
        area_range=(min_area, 1.0),
        max_attempts=100,
        use_image_if_no_bounding_boxes=True,
    )
    small = picture.shrunk(
        _divide_up(picture.height * output[0], size[0]), _divide_up(picture.width * output[1], size[1])
    )
    top, height = _rescaled(begin[0], size[0], picture.height, small.height)
    left, width = _rescaled(begin[1], size[1], picture.width, small.width)
    return small.window(top, left, height, width)


def _apply(order: Sequence[_Distortion], image: tf.Tensor, seeds: Sequence[tf.Tensor]) -> tf.Tensor:
    for distortion, seed in zip(order, seeds, strict=False):
        image = distortion(image, seed)
    return image


def _divide_up(dividend: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    return -(-dividend // divisor)


def _rescaled(start: tf.Tensor, count: tf.Tensor, length: tf.Tensor, new: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Maps the lines `start`, ..., `start + count - 1` of `length` to a smaller copy of the picture of `new` lines."""
    start, count, length, new = (tf.cast(number, tf.int64) for number in (start, count, length, new))
    first = start * new // length
    after = _divide_up((start + count) * new, length)
    return tf.cast(first, tf.int32), tf.cast(after - first, tf.int32)
