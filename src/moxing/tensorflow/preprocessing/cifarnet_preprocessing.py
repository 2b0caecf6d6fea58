"""The pipeline of the CIFAR-10 networks, as TF-Slim defines it.

Training: `padding` zeros are added on all four sides; the output is a crop at a random position; half are flipped; a
brightness drawn uniformly from [-63, 63) is added; every channel is scaled about its mean m by a contrast c drawn
uniformly from [0.2, 1.8): m + c (x - m). Evaluation: the centre of the image; a smaller image is padded with zeros.
Both: standardization per image, (x - mean) / max(standard deviation, 1 / sqrt(number of values)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.pictures import Picture
from moxing.tensorflow.preprocessing.resizing import crop_or_pad, padded_window

_MAX_BRIGHTNESS = 63.0
_CONTRAST = (0.2, 1.8)


@dataclass(frozen=True)
class CifarnetPreprocessing:
    """Pads, crops, flips, changes brightness and contrast (training); crops or pads (evaluation); standardizes.

    Args:
      output_height: the height of the result.
      output_width: the width of the result.
      padding: the number of zeros added on every side before the crop in training.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default():
      ...     picture = DecodedPicture(tf.zeros([32, 32, 3], tf.uint8))
      ...     CifarnetPreprocessing(32, 32).train(picture, tf.constant([1, 2])).shape
      TensorShape([32, 32, 3])
    """

    output_height: int
    output_width: int
    padding: int = 4

    channels: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        if not 0 <= self.padding < min(self.output_height, self.output_width):
            raise ValueError(
                f"padding={self.padding}: expected a number from 0 to less than the output's "
                f"{self.output_height} x {self.output_width}; with more, a crop could be all padding."
            )

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor:
        """Returns the training form of `picture`."""
        for_top, for_left, for_flip, for_brightness, for_contrast = randomness.split(seed, 5)
        top = self._offset(for_top, picture.height, self.output_height, "height")
        left = self._offset(for_left, picture.width, self.output_width, "width")
        image = tf.cast(padded_window(picture, top, left, self.output_height, self.output_width), tf.float32)
        image = tf.compat.v2.image.stateless_random_flip_left_right(image, for_flip)
        image = tf.compat.v2.image.stateless_random_brightness(image, _MAX_BRIGHTNESS, for_brightness)
        image = tf.compat.v2.image.stateless_random_contrast(image, *_CONTRAST, for_contrast)
        return self.normalise(image)

    def evaluate(self, picture: Picture) -> tf.Tensor:
        """Returns the evaluation form of `picture`."""
        image = crop_or_pad(picture, self.output_height, self.output_width)
        return self.normalise(image)

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor:
        """Scales pixels from 0 to 255, of one image or a batch, as the pipeline does."""
        return tf.image.per_image_standardization(tf.cast(images, tf.float32))

    def _offset(self, seed: tf.Tensor, length: tf.Tensor, output: int, side: str) -> tf.Tensor:
        """Returns where the crop begins along one axis, relative to the picture: negative in the padding."""
        enough = tf.debugging.assert_greater_equal(
            length + 2 * self.padding,
            output,
            message=f"The image's {side} with padding={self.padding} on both sides is less than output_{side}={output}",
        )
        with tf.control_dependencies([enough]):
            return randomness.integer(seed, -self.padding, length + self.padding - output)
