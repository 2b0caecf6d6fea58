"""`mox.get_model_fn` and `mox.get_model_meta`: the networks of the zoo."""

from __future__ import annotations

import inspect
import math
import numbers
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import known_mode, known_name, nearest
from moxing.tensorflow.nets.catalogue import NetworkKeys, network
from moxing.tensorflow.nets.images import DEFAULT_PREPROCESSING, check_built, prepared, sized
from moxing.tensorflow.nets.layers import Layers
from moxing.tensorflow.nets.network import Network
from moxing.tensorflow.nets.precision import HALF, computing_dtype, has_gpu

__all__ = ["ModelMeta", "NetworkKeys", "get_model_fn", "get_model_meta"]

ModelFn = Callable[[tf.Tensor], tuple[tf.Tensor, dict[str, tf.Tensor]]]


class ModelMeta(NamedTuple):
    """What a script asks about a network.

    Attributes:
      default_image_size: height and width of the images that it was published with.
      default_labels_offset: what is added to an ImageNet class of its published weights to count from a background
        class: 1 where they have none.
      default_logits_pattern: the variables that depend on the number of classes, as `checkpoint_exclude_patterns`
        takes it.
    """

    default_image_size: int
    default_labels_offset: int
    default_logits_pattern: str


def get_model_meta(name: str) -> ModelMeta:
    """What is known about the network `name`, one of `NetworkKeys`.

    Example:
      >>> get_model_meta('resnet_v1_50')
      ModelMeta(default_image_size=224, default_labels_offset=1, default_logits_pattern='logits')
    """
    found = network(network_key("get_model_meta", name))
    return ModelMeta(found.image_size, found.labels_offset, found.logits_pattern)


def get_model_fn(
    name: str,
    run_mode: str,
    num_classes: int | None,
    weight_decay: float = 0.0,
    data_format: str = "NHWC",
    batch_norm_fused: bool = False,
    batch_renorm: bool = False,
    image_height: int | None = None,
    image_width: int | None = None,
    preprocess_fn: Any = DEFAULT_PREPROCESSING,
    **model_kwargs: Any,
) -> ModelFn:
    """A network of the zoo: `logits, end_points = get_model_fn(name, run_mode, num_classes)(images)`.

    The variables have the names of the published TF-Slim checkpoints. In TRAIN batch normalisation uses the batch and
    dropout drops; the L2 losses of `weight_decay` are in `tf.GraphKeys.REGULARIZATION_LOSSES`.

    Args:
      name: one of `NetworkKeys`.
      run_mode: one of `mox.ModeKeys`.
      num_classes: number of classes; None returns the features in front of the last layer instead of logits.
      weight_decay: factor of the L2 losses of the weights; 0 makes none.
      data_format: `NHWC`, or `NCHW`, which is faster on a GPU. The images are NHWC and the variables the same in both.
        Where no GPU runs it, and in an exported model, the network is built NHWC all the same.
      batch_norm_fused: the moving variance of batch normalisation is unbiased, as in TensorFlow's fused kernel, which
        computes it in both cases.
      batch_renorm: batch renormalisation, with the schedule of its paper.
      image_height: height of the images; only needed where it is not known from their shape.
      image_width: likewise.
      preprocess_fn: what is done to the images first. By default whole numbers are pixels from 0 to 255 and brought
        into the scale that the network was trained with; floating-point images, such as
        `mox.get_data_augmentation_fn` returns, stay as they are. None: nothing is done. Or a function
        `preprocess_fn(images, run_mode)`, which for `NCHW` also has to transpose the images.
      **model_kwargs: options of the network, for example `dropout_keep_prob`; `moxing zoo show NAME` lists them.

    Returns:
      A function from images [batch, height, width, channels] to the logits [batch, num_classes] and a dictionary of
      tensors inside the network. Images of type float16 or bfloat16 give logits of that type.

    Example:
      >>> with tf.Graph().as_default():
      ...     logits, end_points = get_model_fn('lenet', 'TRAIN', num_classes=10)(tf.zeros([8, 28, 28, 1]))
      ...     print(logits.shape, end_points['pool2'].shape)
      (8, 10) (8, 7, 7, 64)
    """
    key = network_key("get_model_fn", name)
    mode = known_mode("get_model_fn", run_mode)
    found = network(key)
    if not isinstance(weight_decay, numbers.Real) or not 0 <= weight_decay < math.inf:
        raise ValueError(f"get_model_fn(weight_decay={weight_decay!r}): expected a number from 0.")
    for argument, value in (("batch_norm_fused", batch_norm_fused), ("batch_renorm", batch_renorm)):
        if value not in (True, False):
            raise ValueError(f"get_model_fn({argument}={value!r}): expected True or False.")
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError(f"get_model_fn(data_format={data_format!r}): expected 'NHWC' or 'NCHW'.")
    if preprocess_fn is not DEFAULT_PREPROCESSING and preprocess_fn is not None and not callable(preprocess_fn):
        raise TypeError(
            f"get_model_fn(preprocess_fn={preprocess_fn!r}): expected a function (images, run_mode), or None."
        )
    _check_options(key, found, model_kwargs)
    return _Model(
        key=key,
        network=found,
        mode=mode,
        run_mode=run_mode,
        num_classes=_whole("num_classes", num_classes, "classes"),
        weight_decay=weight_decay,
        data_format=data_format,
        built_format="NCHW" if data_format == "NCHW" and mode != "EXPORT" and has_gpu() else "NHWC",
        batch_norm_fused=bool(batch_norm_fused),
        batch_renorm=bool(batch_renorm),
        height=_whole("image_height", image_height, "pixels"),
        width=_whole("image_width", image_width, "pixels"),
        preprocess_fn=preprocess_fn,
        options=model_kwargs,
    )


@dataclass(frozen=True)
class _Model:
    """A network with all its settings, to be called with images."""

    key: NetworkKeys
    network: Network
    mode: str
    run_mode: Any
    num_classes: int | None
    weight_decay: float
    data_format: str
    built_format: str
    batch_norm_fused: bool
    batch_renorm: bool
    height: int | None
    width: int | None
    preprocess_fn: Any
    options: Mapping[str, Any]

    def __call__(self, images: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        images = sized(self.key, self.network, images, self.height, self.width)
        x = prepared(self.key, images, self.preprocess_fn, self.run_mode, self.data_format, self.built_format)
        check_built(self.key, self.network, x, self.built_format, self.mode)
        asked = x.dtype
        x = tf.cast(x, computing_dtype(asked) if self.mode != "EXPORT" else _exported_dtype(asked))
        net = Layers(
            training=self.mode == "TRAIN",
            data_format=self.built_format,
            weight_decay=self.weight_decay,
            batch_norm_fused=self.batch_norm_fused,
            batch_renorm=self.batch_renorm,
            variable_dtype=asked,
        )
        outputs = self.network.architecture(net, x, self.num_classes, **self.options)
        end_points = {name: tf.cast(value, asked) for name, value in net.end_points.items()}
        return tf.cast(outputs, asked), end_points


def _whole(argument: str, value: Any, of_what: str) -> int | None:
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = int(value) if isinstance(value, float) and value.is_integer() else 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"get_model_fn({argument}={value!r}): expected a whole number of {of_what}, or None.")
    return number


def _exported_dtype(asked: tf.DType) -> tf.DType:
    # A server may run on a CPU, whatever the model was trained on.
    return tf.float32 if asked in HALF else asked


def network_key(function: str, name: str) -> NetworkKeys:
    """The network that a script names; an unknown name is an error of `function` that lists the nearest ones.

    Example:
      >>> network_key('get_model_meta', 'LeNet')
      <NetworkKeys.LENET: 'lenet'>
    """
    return NetworkKeys(known_name(function, "name", name, [key.value for key in NetworkKeys]))


def options_of(found: Network) -> dict[str, Any]:
    """The options of a network and their defaults: what its architecture has a default for.

    Example:
      >>> options_of(network(NetworkKeys.RESNET_V1_50))
      {'output_stride': None, 'global_pool': True, 'spatial_squeeze': True}
    """
    function: Any = found.architecture
    own = getattr(function, "keywords", {})  # of a partial
    function = getattr(function, "func", function)
    return {
        parameter.name: own.get(parameter.name, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    }


def _check_options(key: NetworkKeys, found: Network, given: Mapping[str, Any]) -> None:
    known = options_of(found)
    unknown = sorted(set(given) - set(known))
    if unknown:
        parameters = inspect.signature(get_model_fn).parameters.values()
        general = [parameter.name for parameter in parameters if parameter.default is not parameter.empty]
        near = {name: nearest(name, [*known, *general], 1) for name in unknown}
        named = [f"{name} (did you mean {near[name][0]}?)" if near[name] else name for name in unknown]
        raise TypeError(
            f"get_model_fn({key.value!r}, ...) has no argument {', '.join(named)}; "
            f"the options of this network: {', '.join(known) or 'none'}."
        )
