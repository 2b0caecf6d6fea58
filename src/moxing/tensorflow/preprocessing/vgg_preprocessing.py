"""The pipeline of the VGG and ResNet papers, as TF-Slim defines it.

With S the length to which the shorter side of the h x w image is scaled, both sides are scaled by S / min(h, w),
rounded to the nearest integer, with bilinear interpolation (TensorFlow 1's, see `resizing`).

Training: S is drawn uniformly from the integers resize_side_min, ..., resize_side_max; the output is cut out at a
place drawn uniformly, at whole pixels of the image as it was; half of the outputs are mirrored. Evaluation:
S = resize_side_min and the output is the middle, its corner at floor((scaled - output) / 2). Both: the ImageNet means
(123.68, 116.78, 103.94) of red, green and blue are subtracted; nothing is divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.pictures import Picture
from moxing.tensorflow.preprocessing.resizing import crop_and_resize, resize_and_crop

#: Means of red, green and blue over ImageNet's training images.
CHANNEL_MEANS = (123.68, 116.78, 103.94)


@dataclass(frozen=True)
class VggPreprocessing:
    """Shorter side to a random (training) or fixed (evaluation) length, crop, mirror, subtract means.

    Args:
      output_height: height of the result.
      output_width: width of the result.
      resize_side_min: shortest length of the shorter side; the length in evaluation.
      resize_side_max: longest length of the shorter side in training.

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
                    f"ask for a smaller output or pass resize_side_min={getattr(self, argument)} or more "
                    "(and resize_side_max at least as much)."
                )

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor:
        """The training form of `picture`."""
        for_side, for_top, for_left, for_mirror = randomness.uniforms(seed, 4)
        side = randomness.whole(for_side, self.resize_side_min, self.resize_side_max)
        height, width = scaled_size(picture, side)
        top = randomness.whole(for_top, 0, height - self.output_height)
        left = randomness.whole(for_left, 0, width - self.output_width)
        size = (self.output_height, self.output_width)
        image = crop_and_resize(picture.shrunk(height, width), (height, width), (top, left), size)
        image = tf.cond(for_mirror < 0.5, lambda: tf.reverse(image, [1]), lambda: image)
        return image - self._means()

    def evaluate(self, picture: Picture) -> tf.Tensor:
        """The evaluation form of `picture`."""
        height, width = scaled_size(picture, self.resize_side_min)
        corner = ((height - self.output_height) // 2, (width - self.output_width) // 2)
        size = (self.output_height, self.output_width)
        return resize_and_crop(picture, (height, width), corner, size) - self._means()

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor:
        """Pixels from 0 to 255, of one image or a batch, in the scale that the pipeline returns."""
        return tf.cast(images, tf.float32) - CHANNEL_MEANS

    def _means(self) -> np.ndarray:
        # For every pixel: spreading three numbers over an image takes TensorFlow as long as half of the resizing.
        return np.tile(np.float32(CHANNEL_MEANS), [self.output_height, self.output_width, 1])


def scaled_size(picture: Picture, side: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Height and width of the picture when its shorter side is scaled to `side`, as int32 scalars.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     height, width = session.run(scaled_size(DecodedPicture(tf.zeros([375, 500, 3])), 256))
      >>> int(height), int(width)
      (256, 341)
    """
    height, width = tf.cast(picture.height, tf.float32), tf.cast(picture.width, tf.float32)
    scale = tf.cast(side, tf.float32) / tf.minimum(height, width)
    return tf.cast(tf.rint(height * scale), tf.int32), tf.cast(tf.rint(width * scale), tf.int32)
