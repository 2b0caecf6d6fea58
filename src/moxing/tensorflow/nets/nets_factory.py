"""`mox.get_model_fn` and `mox.get_model_meta`: the networks of the zoo."""

from __future__ import annotations

import inspect
import math
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.framework.util.names import known_mode, nearest
from moxing.tensorflow.nets.parts.images import DEFAULT_PREPROCESSING, ImageInput
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.parts.precision import computing_dtype, has_gpu
from moxing.tensorflow.network_registry import Network, NetworkKeys, network, network_name

__all__ = ["ModelMeta", "NetworkKeys", "get_model_fn", "get_model_meta"]

ModelFn = Callable[[tf.Tensor], tuple[tf.Tensor, dict[str, tf.Tensor]]]


class ModelMeta(NamedTuple):
    """Facts about a network for scripts.

    Attributes:
      default_image_size: height and width of the images that it was published with.
      default_labels_offset: offset between ImageNet classes with and without a background class: 1 if the published
        weights have no background class.
      default_logits_pattern: regular expression for the variables that depend on the number of classes, for
        `checkpoint_exclude_patterns`.
    """

    default_image_size: int
    default_labels_offset: int
    default_logits_pattern: str


def get_model_meta(name: str) -> ModelMeta:
    """Returns facts about the network `name`, one of `NetworkKeys`.

    Example:
      >>> get_model_meta('resnet_v1_50')
      ModelMeta(default_image_size=224, default_labels_offset=1, default_logits_pattern='logits')
    """
    found = network(network_name("get_model_meta", name))
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
    """Returns a network: `logits, end_points = get_model_fn(name, run_mode, num_classes)(images)`.

    The variables have the names of the published TF-Slim checkpoints. In TRAIN batch normalisation uses the batch and
    dropout drops; the L2 losses of `weight_decay` are in `tf.GraphKeys.REGULARIZATION_LOSSES`.

    Args:
      name: one of `NetworkKeys`, or a name of `register_network`.
      run_mode: one of `mox.ModeKeys`.
      num_classes: number of classes; None: the network returns the features in front of the last layer.
      weight_decay: factor of the L2 losses of the weights; 0: none.
      data_format: `NHWC`, or `NCHW`, which is faster on a GPU. The images are NHWC and the variables the same in both.
        Without a GPU, and in an exported model, the network is built as NHWC anyway.
      batch_norm_fused: true if the moving variance of batch normalisation is unbiased, as in TensorFlow's fused
        kernel.
      batch_renorm: true for batch renormalisation, with the schedule of its paper.
      image_height: height of the images; only needed if their shape does not have it.
      image_width: likewise.
      preprocess_fn: preprocessing of the images. By default integers are pixels from 0 to 255 and are scaled as the
        network was trained; floating-point images, such as `mox.get_data_augmentation_fn` returns, are not changed.
        None: no preprocessing. Or a function `preprocess_fn(images, run_mode)`, which for `NCHW` also has to
        transpose the images.
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
    key = network_name("get_model_fn", name)
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
    built_format = "NCHW" if data_format == "NCHW" and mode != "EXPORT" and has_gpu() else "NHWC"
    image_input = ImageInput(
        key,
        found,
        run_mode=run_mode,
        preprocess_fn=preprocess_fn,
        height=_positive_integer("image_height", image_height, "pixels"),
        width=_positive_integer("image_width", image_width, "pixels"),
        data_format=data_format,
        built_format=built_format,
        size_required=mode == "EXPORT",
    )
    layers = partial(
        Layers,
        training=mode == "TRAIN",
        data_format=built_format,
        weight_decay=weight_decay,
        batch_norm_fused=bool(batch_norm_fused),
        batch_renorm=bool(batch_renorm),
    )
    classes = _positive_integer("num_classes", num_classes, "classes")

    def model(images: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        x = image_input(images)
        dtype = x.dtype
        net = layers(variable_dtype=dtype)
        before = {id(variable) for variable in tf.global_variables()}
        outputs = found.architecture(
            net, tf.cast(x, computing_dtype(dtype, exporting=mode == "EXPORT")), classes, **model_kwargs
        )
        _check_outputs(key, found, outputs)
        _check_scope(key, found, [variable for variable in tf.global_variables() if id(variable) not in before])
        return tf.cast(outputs, dtype), {name: tf.cast(value, dtype) for name, value in net.end_points.items()}

    return model


def _check_outputs(key: str, found: Network, outputs: Any) -> None:
    if not tf.is_tensor(outputs):
        function = getattr(found.architecture, "__name__", repr(found.architecture))
        raise TypeError(
            f"The network {key!r}: {function}() returned {outputs!r:.200}; expected a tensor: the logits, or the "
            "features in front of the last layer if num_classes is None. Add other tensors with net.end_point(name, "
            "tensor)."
        )


def _check_scope(key: str, found: Network, created: Sequence[tf.Variable]) -> None:
    """Raises a ValueError if the network created variables outside of its scope."""
    if not found.scope:
        return
    scope = f"/{found.scope.strip('/')}/"
    outside = [variable.op.name for variable in created if scope not in f"/{variable.op.name}"]
    if outside:
        raise ValueError(
            f"The network {key!r} has Network(scope={found.scope!r}) and created the variable {outside[0]!r}, which is "
            f"not in that scope. Build its layers in `with net.scope({found.scope!r}):`, or correct Network(scope=...)."
        )


def _positive_integer(argument: str, value: Any, of_what: str) -> int | None:
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = int(value) if isinstance(value, float) and value.is_integer() else 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"get_model_fn({argument}={value!r}): expected a whole number of {of_what}, or None.")
    return number


def options_of(found: Network) -> dict[str, Any]:
    """Returns the options of a network and their defaults: the keyword arguments of its architecture.

    Example:
      >>> options_of(network('resnet_v1_50'))
      {'output_stride': None, 'global_pool': True, 'spatial_squeeze': True}
    """
    function: Any = found.architecture
    bound = getattr(function, "keywords", {})  # of a partial
    function = getattr(function, "func", function)
    return {
        parameter.name: bound.get(parameter.name, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    }


def _check_options(key: str, found: Network, given: Mapping[str, Any]) -> None:
    known = options_of(found)
    unknown = sorted(set(given) - set(known))
    if unknown:
        parameters = inspect.signature(get_model_fn).parameters.values()
        general = [parameter.name for parameter in parameters if parameter.default is not parameter.empty]
        near = {name: nearest(name, [*known, *general], 1) for name in unknown}
        named = [f"{name} (did you mean {near[name][0]}?)" if near[name] else name for name in unknown]
        raise TypeError(
            f"get_model_fn({key!r}, ...) has no argument {', '.join(named)}; "
            f"the options of this network: {', '.join(known) or 'none'}."
        )
