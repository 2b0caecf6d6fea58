"""The pipeline of PVANET's pre-training on ImageNet.

Source: Hong et al., "PVANet: Lightweight Deep Neural Networks for Real-time Object Detection" (arXiv 1611.08588),
section on training: every image is resized to 256 x 256, whatever its aspect ratio, and cropped at a random position.
The crop has the output size, by default the 192 x 192 of the paper.
The paper does not specify the rest. Here half of the training crops are flipped, evaluation uses the centre, and the
ImageNet means (123.68, 116.78, 103.94) are subtracted as in the VGG pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.pictures import Picture
from moxing.tensorflow.preprocessing.resizing import resize_and_crop
from moxing.tensorflow.preprocessing.vgg_preprocessing import CHANNEL_MEANS


@dataclass(frozen=True)
class PvanetPreprocessing:
    """Resizes to a square, crops at random (training) or at the centre (evaluation), flips, subtracts the means.

    Args:
      output_height: the height of the result.
      output_width: the width of the result.
      resize_side: the height and width of the square.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default():
      ...     PvanetPreprocessing(192, 192).evaluate(DecodedPicture(tf.zeros([300, 400, 3]))).shape
      TensorShape([192, 192, 3])
    """

    output_height: int
    output_width: int
    resize_side: int = 256

    channels: ClassVar[int | None] = 3

    def __post_init__(self) -> None:
        for argument in ("output_height", "output_width"):
            if getattr(self, argument) > self.resize_side:
                raise ValueError(
                    f"{argument}={getattr(self, argument)} is more than resize_side={self.resize_side}, the length to "
                    "which both sides of an image are resized before the crop: pass a smaller output size, or "
                    f"resize_side={getattr(self, argument)} or more."
                )

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor:
        """Returns the training form of `picture`."""
        for_top, for_left, for_flip = randomness.split(seed, 3)
        top = randomness.integer(for_top, 0, self.resize_side - self.output_height)
        left = randomness.integer(for_left, 0, self.resize_side - self.output_width)
        picture = picture.shrunk(self.resize_side, self.resize_side)
        return self._crop(picture, top, left, randomness.coin(for_flip))

    def evaluate(self, picture: Picture) -> tf.Tensor:
        """Returns the evaluation form of `picture`."""
        top, left = (self.resize_side - self.output_height) // 2, (self.resize_side - self.output_width) // 2
        return self._crop(picture, top, left)

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor:
        """Scales pixels from 0 to 255, of one image or a batch, as the pipeline does."""
        return tf.cast(images, tf.float32) - CHANNEL_MEANS

    def _crop(
        self, picture: Picture, top: tf.Tensor | int, left: tf.Tensor | int, flipped: tf.Tensor | None = None
    ) -> tf.Tensor:
        resized = (self.resize_side, self.resize_side)
        size = (self.output_height, self.output_width)
        return self.normalise(resize_and_crop(picture, resized, (top, left), size, flipped))
