"""The augmentation of images: a pipeline in its training form or in its evaluation form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import tensorflow.compat.v1 as tf

from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.pictures import DecodedPicture, Picture


class Pipeline(Protocol):
    """A pipeline: a frozen dataclass of the output size and the pipeline's own options."""

    #: The number of channels that an image must have; None accepts any.
    channels: ClassVar[int | None]

    @property
    def output_height(self) -> int: ...

    @property
    def output_width(self) -> int: ...

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor: ...

    def evaluate(self, picture: Picture) -> tf.Tensor: ...

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor: ...


@dataclass(frozen=True, eq=False)
class Augmentation:
    """The augmentation of one network in one mode; `get_data_augmentation_fn` returns it.

    Attributes:
      pipeline: the pipeline of the network.
      training: whether to use the training form, which is random.
    """

    pipeline: Pipeline
    training: bool

    @property
    def output_height(self) -> int:
        """The height of the result."""
        return self.pipeline.output_height

    @property
    def output_width(self) -> int:
        """The width of the result."""
        return self.pipeline.output_width

    def __call__(self, image: tf.Tensor, seed: Any = None) -> tf.Tensor:
        """Augments a decoded image.

        Args:
          image: [height, width, channels] with values from 0 to 255 of any numeric type. A uint8 image and the same
            image as floats give the same result.
          seed: two integers that determine every random decision. None uses the seed of the sample if the image comes
            from a dataset of ours, and draws one otherwise. The evaluation form is not random.

        Returns:
          float32 [output_height, output_width, channels].
        """
        picture = DecodedPicture(image)
        dtype = picture.whole().dtype
        if not (dtype.is_integer or dtype.is_floating):
            raise ValueError(
                f"image={image!r}: expected numbers from 0 to 255. Decode the bytes of a file first, "
                "for example with tf.image.decode_jpeg(..., channels=3)."
            )
        return self.apply(picture, None if seed is None else randomness.as_seed(seed))

    def apply(self, picture: Picture, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Augments a `Picture`, and decodes only the part of it that the result needs; see `__call__`."""
        self._check_channels(picture)
        if self.training:
            image = self.pipeline.train(picture, randomness.sample_seed(picture.origin) if seed is None else seed)
        else:
            image = self.pipeline.evaluate(picture)
        image.set_shape([self.pipeline.output_height, self.pipeline.output_width, picture.channels])
        return image

    def _check_channels(self, picture: Picture) -> None:
        expected = self.pipeline.channels
        if expected is None or picture.channels == expected:
            return
        advice = {
            1: "convert a grey image to three channels with tf.image.grayscale_to_rgb(image), "
            "or decode it with channels=3",
            4: "drop the alpha channel with image[:, :, :3], or decode it with channels=3",
        }
        raise ValueError(
            f"The image has {picture.channels} channel(s), expected {expected}: "
            + advice.get(picture.channels, "this network was trained on RGB images")
            + "."
        )
