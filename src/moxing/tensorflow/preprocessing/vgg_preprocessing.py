"""The pipeline of the VGG and ResNet papers, as TF-Slim defines it.

With S the length to which the shorter side of the h x w image is scaled, both sides are scaled by S / min(h, w),
rounded to the nearest integer, with bilinear interpolation (TensorFlow 1's, see `resizing`).

Training: S is drawn uniformly from the integers resize_side_min, ..., resize_side_max; the output is a crop at a random
position, aligned to the pixels of the original image; half of the outputs are flipped. Evaluation:
S = resize_side_min and the output is the centre, its corner at floor((scaled - output) / 2). Both: the ImageNet means
(123.68, 116.78, 103.94) of red, green and blue are subtracted; nothing is divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.pictures import Picture
from moxing.tensorflow.preprocessing.resizing import crop_and_resize, resize_and_crop

#: The means of red, green and blue over the training images of ImageNet.
CHANNEL_MEANS = (123.68, 116.78, 103.94)


@dataclass(frozen=True)
class VggPreprocessing:
    """Scales the shorter side to a random (training) or fixed (evaluation) length, crops, flips, subtracts the means.

    Args:
      output_height: the height of the result.
      output_width: the width of the result.
      resize_side_min: the smallest length of the shorter side; the length in evaluation.
      resize_side_max: the largest length of the shorter side in training.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default():
      ...     VggPreprocessing(224, 224).evaluate(DecodedPicture(tf.zeros([300, 400, 3]))).shape
      TensorShape([224, 224, 3])
    """

    output_height: int
    output_width: int
    resize_side_min: int = 256
    resize_side_max: int = 512

    channels: ClassVar[int | None] = 3

    def __post_init__(self) -> None:
        if self.resize_side_min > self.resize_side_max:
            raise ValueError(
                f"resize_side_min={self.resize_side_min}, resize_side_max={self.resize_side_max}: "
                "expected resize_side_min <= resize_side_max."
            )
        for argument in ("output_height", "output_width"):
            if getattr(self, argument) > self.resize_side_min:
                raise ValueError(
                    f"{argument}={getattr(self, argument)} is more than resize_side_min={self.resize_side_min}, "
                    "the length to which the shorter side of an image is resized before the crop: "
                    f"pass a smaller output size, or resize_side_min={getattr(self, argument)} or more "
                    "(and resize_side_max at least as much)."
                )

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor:
        """Returns the training form of `picture`."""
        means = self._means()
        for_side, for_top, for_left, for_flip = randomness.uniforms(seed, 4)
        side = randomness.whole(for_side, self.resize_side_min, self.resize_side_max)
        height, width = picture.scaled_size(side)
        top = randomness.whole(for_top, 0, height - self.output_height)
        left = randomness.whole(for_left, 0, width - self.output_width)
        size = (self.output_height, self.output_width)
        image = crop_and_resize(picture.shrunk(height, width), (height, width), (top, left), size)
        image = tf.cond(for_flip < 0.5, lambda: tf.reverse(image, [1]), lambda: image)
        return image - means

    def evaluate(self, picture: Picture) -> tf.Tensor:
        """Returns the evaluation form of `picture`."""
        height, width = picture.scaled_size(self.resize_side_min)
        corner = ((height - self.output_height) // 2, (width - self.output_width) // 2)
        size = (self.output_height, self.output_width)
        return resize_and_crop(picture, (height, width), corner, size) - self._means()

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor:
        """Scales pixels from 0 to 255, of one image or a batch, as the pipeline does."""
        return tf.cast(images, tf.float32) - CHANNEL_MEANS

    def _means(self) -> np.ndarray:
        # For every pixel: broadcasting three numbers over an image costs as much as half of the resizing.
        return np.tile(np.float32(CHANNEL_MEANS), [self.output_height, self.output_width, 1])
