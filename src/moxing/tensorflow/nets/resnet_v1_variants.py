"""Variants of ResNet-50: for large batches, and MoXing's own.

`resnet_v1_50_8k` is ResNet-50 as Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour" (2017),
begin to train it with batches of 8,192: the last batch normalisation of every unit begins with gamma 0, so that a unit
begins as the identity, and the weights of the logits begin with a normal distribution of deviation 0.01.

`resnet_v1_50_mox` was named but never documented. Here it is ours: the strides in the first unit of a block, on its 3x3
convolution ("v1.5"), and gamma 0 as above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.resnet_v1 import (
    BATCH_NORM,
    UNITS,
    blocks_of,
    bottleneck,
    classified,
    for_imagenet,
    stacked,
    stem,
)
from moxing.tensorflow.network_registry import Network

_MODES = ("FAN_IN", "FAN_OUT", "FAN_AVG")

#: A unit that is initialised as the identity.
_identity_unit = partial(bottleneck, last_batch_norm=replace(BATCH_NORM, zero_gamma=True))


def resnet_v1_50_8k(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    official: bool = False,
    weights_initializer_params: Mapping[str, Any] | None = None,
    output_stride: int | None = None,
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """ResNet-50 for batches of thousands; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      official: the strides stand in the first unit of a block, on its 3x3 convolution, as in the paper and in
        TensorFlow's official models; else in the last unit of the block before, as in TF-Slim.
      weights_initializer_params: `factor` and `mode` (`FAN_IN`, `FAN_OUT` or `FAN_AVG`) of the variance scaling that
        the weights of the convolutions begin with; what is missing is 2.0 and `FAN_IN`.
      output_stride: see `resnet_v1.blocks_of`.
      global_pool: false keeps height and width, for dense prediction.
      spatial_squeeze: false keeps the axes of height and width of the logits, of length 1 after global pooling.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     params = {'factor': 1.0, 'mode': 'FAN_OUT'}
      ...     resnet_v1_50_8k(net, tf.zeros([2, 64, 64, 3]), 10, weights_initializer_params=params).shape
      TensorShape([2, 10])
    """
    if not isinstance(official, bool):
        raise ValueError(f"official={official!r}: expected True or False.")
    initializer = _variance_scaling(weights_initializer_params)
    net = net.styled(batch_norm=BATCH_NORM, collect=True, initializer=initializer)
    with net.scope("resnet_v1_50_8k"):
        x = stem(net, images)
        x = stacked(net, x, blocks_of(UNITS[50], output_stride, first_unit_strides=official), _identity_unit)
        return classified(net, x, num_classes, global_pool, spatial_squeeze, tf.random_normal_initializer(stddev=0.01))


def resnet_v1_50_mox(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    output_stride: int | None = None,
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """ResNet-50 with strides on the 3x3 convolutions of the first units and gamma 0; see `resnet_v1_50_8k`.

    Example:
      >>> with tf.Graph().as_default():
      ...     resnet_v1_50_mox(Layers(training=False), tf.zeros([2, 64, 64, 3]), 10).shape
      TensorShape([2, 10])
    """
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    with net.scope("resnet_v1_50_mox"):
        x = stem(net, images)
        x = stacked(net, x, blocks_of(UNITS[50], output_stride, first_unit_strides=True), _identity_unit)
        return classified(net, x, num_classes, global_pool, spatial_squeeze)


def _variance_scaling(params: Mapping[str, Any] | None) -> Any:
    given = {} if params is None else params
    known = isinstance(given, Mapping) and set(given) <= {"factor", "mode"}
    factor, mode = (given.get("factor", 2.0), given.get("mode", "FAN_IN")) if known else (None, None)
    positive = isinstance(factor, (int, float)) and not isinstance(factor, bool) and 0 < factor < float("inf")
    if not positive or mode not in _MODES:
        expected = f"a dict with factor (a positive number) and mode ({', '.join(_MODES)})"
        raise ValueError(f"weights_initializer_params={params!r}: expected {expected}.")
    return tf.variance_scaling_initializer(factor, mode.lower(), "truncated_normal")


NETWORKS: dict[str, Network] = {
    name: for_imagenet(name, architecture)
    for name, architecture in {"resnet_v1_50_8k": resnet_v1_50_8k, "resnet_v1_50_mox": resnet_v1_50_mox}.items()
}
