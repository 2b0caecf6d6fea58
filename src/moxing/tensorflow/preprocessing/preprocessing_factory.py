"""`mox.get_data_augmentation_fn`: the data augmentation of a network, by the name of the network."""

from __future__ import annotations

import dataclasses
import operator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import known_mode, known_name
from moxing.tensorflow.network_registry import REGISTER_ADVICE, NetworkKeys, network, network_names
from moxing.tensorflow.preprocessing.augmentation import Augmentation
from moxing.tensorflow.preprocessing.cifarnet_preprocessing import CifarnetPreprocessing
from moxing.tensorflow.preprocessing.inception_preprocessing import InceptionPreprocessing
from moxing.tensorflow.preprocessing.lenet_preprocessing import LenetPreprocessing
from moxing.tensorflow.preprocessing.pvanet_preprocessing import PvanetPreprocessing
from moxing.tensorflow.preprocessing.vgg_preprocessing import VggPreprocessing

#: The pipelines that `get_data_augmentation_fn` accepts in addition to networks, with their image size.
_PIPELINE_SIZES = {"inception": 299, "vgg": 224}

if TYPE_CHECKING:

    class PreprocessingKeys(NetworkKeys):  # type: ignore[misc]
        """The names that `get_data_augmentation_fn` knows: all networks, and the pipelines `vgg` and `inception`."""

        INCEPTION = "inception"
        VGG = "vgg"

else:
    # An enum cannot inherit members: `NetworkKeys` is the only list of networks.
    PreprocessingKeys = StrEnum(
        "PreprocessingKeys", {name.upper(): name for name in (*NetworkKeys, *_PIPELINE_SIZES)}, module=__name__
    )


#: The pipelines by name, for `Network.preprocessing`; `register_preprocessing` adds to them.
_PIPELINES: dict[str, type[Any]] = {
    "cifarnet": CifarnetPreprocessing,
    "inception": InceptionPreprocessing,
    "lenet": LenetPreprocessing,
    "pvanet": PvanetPreprocessing,
    "vgg": VggPreprocessing,
}


def register_preprocessing(name: str, pipeline: type[Any]) -> None:
    """Adds a pipeline, so that networks can name it in `Network.preprocessing`.

    Args:
      name: the name of the pipeline.
      pipeline: a frozen dataclass with the methods of `augmentation.Pipeline`.

    Raises:
      ValueError: there is a pipeline of this name already.

    Example:
      >>> register_preprocessing('vgg', VggPreprocessing)
      Traceback (most recent call last):
      ValueError: register_preprocessing('vgg'): there is a pipeline of this name already.
    """
    if name in _PIPELINES:
        raise ValueError(f"register_preprocessing({name!r}): there is a pipeline of this name already.")
    _PIPELINES[name] = pipeline


def _pipeline(preprocessing: str) -> type[Any]:
    if preprocessing not in _PIPELINES:
        raise ValueError(f"Network(preprocessing={preprocessing!r}): expected one of {', '.join(_PIPELINES)}.")
    return _PIPELINES[preprocessing]


def get_data_augmentation_fn(
    name: str, run_mode: str, output_height: int | None = None, output_width: int | None = None, **kwargs: Any
) -> Augmentation:
    """Returns the data augmentation of a network: `image = get_data_augmentation_fn(name, run_mode)(image)`.

    The augmentation is random in TRAIN; in EVAL, PREDICT and EXPORT it is not. It takes and returns one image, not a
    batch. Every random decision depends on one seed per sample, so that a seeded run is exactly reproducible, whatever
    the number of threads.

    Args:
      name: one of `PreprocessingKeys`, the name of a network.
      run_mode: one of `mox.ModeKeys`.
      output_height: the height of the result; None uses that of the network.
      output_width: the width of the result; None uses that of the network.
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
    key = known_name("get_data_augmentation_fn", "name", name, [*network_names(), *_PIPELINE_SIZES], REGISTER_ADVICE)
    training = known_mode("get_data_augmentation_fn", run_mode) == "TRAIN"
    if key in _PIPELINE_SIZES:
        pipeline_class, size = _pipeline(key), _PIPELINE_SIZES[key]
    else:
        pipeline_class, size = _pipeline(network(key).preprocessing), network(key).image_size
    options = [field.name for field in dataclasses.fields(pipeline_class) if not field.name.startswith("output_")]
    unknown = sorted(set(kwargs) - set(options))
    if unknown:
        raise TypeError(
            f"get_data_augmentation_fn({key!r}, ...) has no option {', '.join(unknown)}; "
            f"its options: {', '.join(options) or 'none'}."
        )
    pipeline = pipeline_class(
        output_height=_length("output_height", output_height, size),
        output_width=_length("output_width", output_width, size),
        **kwargs,
    )
    return Augmentation(pipeline, training)


def normalise_pixels(preprocessing: str, images: tf.Tensor) -> tf.Tensor:
    """Scales pixels from 0 to 255 as a pipeline does, without its crops and distortions.

    Args:
      preprocessing: the name of the pipeline, see `Network.preprocessing`.
      images: the pixels.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     print(session.run(normalise_pixels('inception', tf.constant([[0, 255]], tf.uint8))))
      [[-1.  1.]]
    """
    normalised: tf.Tensor = _pipeline(preprocessing).normalise(images)
    return normalised


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
