"""`mox.get_data_augmentation_fn`: the data augmentation that belongs to a network, by the network's name."""

from __future__ import annotations

import dataclasses
import operator
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import known_mode, known_name
from moxing.tensorflow.preprocessing import randomness
from moxing.tensorflow.preprocessing.cifarnet_preprocessing import CifarnetPreprocessing
from moxing.tensorflow.preprocessing.inception_preprocessing import InceptionPreprocessing
from moxing.tensorflow.preprocessing.lenet_preprocessing import LenetPreprocessing
from moxing.tensorflow.preprocessing.pictures import DecodedPicture, Picture
from moxing.tensorflow.preprocessing.pvanet_preprocessing import PvanetPreprocessing
from moxing.tensorflow.preprocessing.vgg_preprocessing import VggPreprocessing


class PreprocessingKeys(StrEnum):
    """The names that `get_data_augmentation_fn` knows: networks, and the families `vgg` and `inception`."""

    ALEXNET_V2 = "alexnet_v2"
    CIFARNET = "cifarnet"
    INCEPTION = "inception"
    INCEPTION_RESNET_V2 = "inception_resnet_v2"
    INCEPTION_V1 = "inception_v1"
    INCEPTION_V2 = "inception_v2"
    INCEPTION_V3 = "inception_v3"
    INCEPTION_V4 = "inception_v4"
    LENET = "lenet"
    MOBILENET_V1 = "mobilenet_v1"
    MOBILENET_V1_025 = "mobilenet_v1_025"
    MOBILENET_V1_050 = "mobilenet_v1_050"
    MOBILENET_V1_075 = "mobilenet_v1_075"
    MOBILENET_V2 = "mobilenet_v2"
    MOBILENET_V2_035 = "mobilenet_v2_035"
    MOBILENET_V2_140 = "mobilenet_v2_140"
    NASNET_CIFAR = "nasnet_cifar"
    NASNET_LARGE = "nasnet_large"
    NASNET_MOBILE = "nasnet_mobile"
    OVERFEAT = "overfeat"
    PNASNET_LARGE = "pnasnet_large"
    PNASNET_MOBILE = "pnasnet_mobile"
    PVANET = "pvanet"
    RESNET_V1_18 = "resnet_v1_18"
    RESNET_V1_20 = "resnet_v1_20"
    RESNET_V1_50 = "resnet_v1_50"
    RESNET_V1_50_8K = "resnet_v1_50_8k"
    RESNET_V1_50_MOX = "resnet_v1_50_mox"
    RESNET_V1_50_OCT = "resnet_v1_50_oct"
    RESNET_V1_101 = "resnet_v1_101"
    RESNET_V1_110 = "resnet_v1_110"
    RESNET_V1_152 = "resnet_v1_152"
    RESNET_V1_200 = "resnet_v1_200"
    RESNET_V2_50 = "resnet_v2_50"
    RESNET_V2_101 = "resnet_v2_101"
    RESNET_V2_152 = "resnet_v2_152"
    RESNET_V2_200 = "resnet_v2_200"
    RESNEXT_B_50 = "resnext_b_50"
    RESNEXT_B_101 = "resnext_b_101"
    RESNEXT_C_50 = "resnext_c_50"
    RESNEXT_C_101 = "resnext_c_101"
    VGG = "vgg"
    VGG_16 = "vgg_16"
    VGG_16_BN = "vgg_16_bn"
    VGG_19 = "vgg_19"
    VGG_19_BN = "vgg_19_bn"
    VGG_A = "vgg_a"
    VGG_A_BN = "vgg_a_bn"
    XCEPTION_41 = "xception_41"
    XCEPTION_65 = "xception_65"
    XCEPTION_71 = "xception_71"


class Pipeline(Protocol):
    """What a pipeline is: a frozen dataclass of the output's size and the pipeline's own options."""

    #: The number of channels that an image must have; None is any.
    channels: ClassVar[int | None]

    @property
    def output_height(self) -> int: ...

    @property
    def output_width(self) -> int: ...

    def train(self, picture: Picture, seed: tf.Tensor) -> tf.Tensor: ...

    def evaluate(self, picture: Picture) -> tf.Tensor: ...

    @staticmethod
    def normalise(images: tf.Tensor) -> tf.Tensor: ...


_DEFAULT_SIZE = 224

#: Height and width of the images that a network was published with, where it is not 224.
_SIZES = {
    PreprocessingKeys.CIFARNET: 32,
    PreprocessingKeys.INCEPTION: 299,
    PreprocessingKeys.INCEPTION_RESNET_V2: 299,
    PreprocessingKeys.INCEPTION_V3: 299,
    PreprocessingKeys.INCEPTION_V4: 299,
    PreprocessingKeys.LENET: 28,
    PreprocessingKeys.NASNET_CIFAR: 32,
    PreprocessingKeys.NASNET_LARGE: 331,
    PreprocessingKeys.OVERFEAT: 231,
    PreprocessingKeys.PNASNET_LARGE: 331,
    PreprocessingKeys.PVANET: 192,
    PreprocessingKeys.RESNET_V1_20: 32,
    PreprocessingKeys.RESNET_V1_110: 32,
    PreprocessingKeys.XCEPTION_41: 299,
    PreprocessingKeys.XCEPTION_65: 299,
    PreprocessingKeys.XCEPTION_71: 299,
}

_CIFARNET_LIKE = ("cifarnet", "nasnet_cifar", "resnet_v1_20", "resnet_v1_110")
_INCEPTION_LIKE = ("inception", "mobilenet", "nasnet", "pnasnet", "xception")


def _pipeline_class(key: PreprocessingKeys) -> type[Any]:
    if key is PreprocessingKeys.LENET:
        return LenetPreprocessing
    if key is PreprocessingKeys.PVANET:
        return PvanetPreprocessing
    if key in _CIFARNET_LIKE:
        return CifarnetPreprocessing
    return InceptionPreprocessing if key.startswith(_INCEPTION_LIKE) else VggPreprocessing


class Augmentation:
    """The augmentation of one network in one mode; `get_data_augmentation_fn` makes it.

    Attributes:
      output_height: height of the result.
      output_width: width of the result.
      training: whether it is the training form, with its random decisions.
    """

    def __init__(self, pipeline: Pipeline, training: bool) -> None:
        self._pipeline = pipeline
        self.output_height = pipeline.output_height
        self.output_width = pipeline.output_width
        self.training = training

    def __call__(self, image: tf.Tensor, seed: Any = None) -> tf.Tensor:
        """Augments a decoded image.

        Args:
          image: [height, width, channels], values from 0 to 255 of any number type, whole or not: a uint8 image and
            the same as floats give the same result.
          seed: two integers that decide everything random; None takes the seed of the sample, if the image comes from
            a data set of ours, and draws one otherwise. The evaluation form decides nothing.

        Returns:
          float32 [output_height, output_width, channels].
        """
        picture = DecodedPicture(image)
        dtype = picture.whole().dtype
        if not (dtype.is_integer or dtype.is_floating):
            raise ValueError(
                f"image={image!r}: expected numbers from 0 to 255. Bytes of a file are decoded first, "
                "for example with tf.image.decode_jpeg(..., channels=3)."
            )
        return self.apply(picture, seed)

    def apply(self, picture: Picture, seed: Any = None) -> tf.Tensor:
        """Augments a `Picture`, of which no more is decoded than the result needs; see `__call__`."""
        self._check_channels(picture)
        given = None if seed is None else randomness.as_seed(seed)
        if self.training:
            image = self._pipeline.train(picture, randomness.sample_seed(_origin(picture)) if given is None else given)
        else:
            image = self._pipeline.evaluate(picture)
        image.set_shape([self.output_height, self.output_width, picture.channels])
        return image

    def _check_channels(self, picture: Picture) -> None:
        expected = self._pipeline.channels
        if expected is None or picture.channels == expected:
            return
        advice = {
            1: "turn a grey image into three channels with tf.image.grayscale_to_rgb(image), "
            "or decode it with channels=3",
            4: "drop the alpha channel with image[:, :, :3], or decode it with channels=3",
        }
        raise ValueError(
            f"The image has {picture.channels} channel(s), expected {expected}: "
            + advice.get(picture.channels, "this network was trained on red, green and blue")
            + "."
        )


def _origin(picture: Picture) -> tf.Tensor:
    """A tensor that comes from what the picture was made of."""
    # The height of a decoded image may be a constant; that of an encoded one is read from its bytes.
    return picture.whole() if isinstance(picture, DecodedPicture) else picture.height


def get_data_augmentation_fn(
    name: str, run_mode: str, output_height: int | None = None, output_width: int | None = None, **kwargs: Any
) -> Augmentation:
    """The data augmentation that belongs to a network: `image = get_data_augmentation_fn(name, run_mode)(image)`.

    In TRAIN the augmentation is random, in EVAL, PREDICT and EXPORT it is not. It takes and returns one image, not
    a batch. Every random decision follows from one seed per sample, so that a seeded run is repeated exactly however
    many images are worked on in parallel.

    Args:
      name: one of `PreprocessingKeys`, the name of a network.
      run_mode: one of `mox.ModeKeys`.
      output_height: height of the result; None is the network's own.
      output_width: width of the result; None is the network's own.
      **kwargs: options of the pipeline. For VGG, ResNet, ResNeXt, AlexNet and OverFeat: `resize_side_min` (256) and
        `resize_side_max` (512), the shorter side before the crop. For Inception, MobileNet, (P)NASNet and Xception:
        `fast_mode` (True) and `central_fraction` (0.875). For the CIFAR networks: `padding` (4).
        For PVANET: `resize_side` (256). For LeNet: none.

    Example:
      >>> with tf.Graph().as_default():
      ...     augment = get_data_augmentation_fn('resnet_v1_50', 'TRAIN', output_height=192, output_width=192)
      ...     augment(tf.zeros([375, 500, 3], tf.uint8)).shape
      TensorShape([192, 192, 3])
    """
    key = _key(name)
    training = known_mode("get_data_augmentation_fn", run_mode) == "TRAIN"
    pipeline_class = _pipeline_class(key)
    size = _SIZES.get(key, _DEFAULT_SIZE)
    options = [field.name for field in dataclasses.fields(pipeline_class) if not field.name.startswith("output_")]
    unknown = sorted(set(kwargs) - set(options))
    if unknown:
        raise TypeError(
            f"get_data_augmentation_fn({key.value!r}, ...) has no option {', '.join(unknown)}; "
            f"its options: {', '.join(options) or 'none'}."
        )
    pipeline = pipeline_class(
        output_height=_length("output_height", output_height, size),
        output_width=_length("output_width", output_width, size),
        **kwargs,
    )
    return Augmentation(pipeline, training)


def normalise_pixels(name: str, images: tf.Tensor) -> tf.Tensor:
    """Pixels from 0 to 255 in the scale that the network's augmentation returns, and nothing else done to them.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     print(session.run(normalise_pixels('inception_v3', tf.constant([[0, 255]], tf.uint8))))
      [[-1.  1.]]
    """
    normalised: tf.Tensor = _pipeline_class(_key(name)).normalise(images)
    return normalised


def _key(name: str) -> PreprocessingKeys:
    known = [key.value for key in PreprocessingKeys]
    return PreprocessingKeys(known_name("get_data_augmentation_fn", "name", name, known))


def _length(argument: str, value: Any, default: int) -> int:
    if value is None:
        return default
    try:
        length = operator.index(value)
    except TypeError:
        length = 0
    if length < 1 or isinstance(value, bool):
        raise ValueError(f"get_data_augmentation_fn({argument}={value!r}): expected a positive whole number of pixels.")
    return length
