"""LeNet's pipeline, as TF-Slim defines it: (x - 128) / 128, the same in training and evaluation.

A larger image is cropped to its centre, a smaller one is padded with zeros (before the scaling).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing.pictures import Picture
from moxing.tensorflow.preprocessing.resizing import crop_or_pad


@dataclass(frozen=True)
class LenetPreprocessing:
    """Crop or pad to the output size, scale to [-1, 1).

    Args:
      output_height: the height of the result.
      output_width: the width of the result.

    Example:
      >>> from moxing.tensorflow.preprocessing.pictures import DecodedPicture
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     picture = DecodedPicture(tf.fill([2, 2, 1], 192.0))
      ...     print(session.run(LenetPreprocessing(2, 2).evaluate(picture))[0, 0])
      [0.5]
    """

    output_height: int
    output_width: int

    channels: ClassVar[int | None] = None

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor:
        """Returns the training form of `picture`, which is the evaluation form: nothing is random."""
        del seed
        return self.evaluate(picture)

    def evaluate(self, picture: Picture) -> tf.Tensor:
        """Returns the evaluation form of `picture`."""
        return self.normalise(crop_or_pad(picture, self.output_height, self.output_width))

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor:
        """Scales pixels from 0 to 255, of one image or a batch, as the pipeline does."""
        return (tf.cast(images, tf.float32) - 128.0) / 128.0
