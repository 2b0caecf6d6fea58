"""ResNet with pre-activation: He et al., "Identity mappings in deep residual networks" (2016), as TF-Slim published it.

Batch normalisation and activation stand before the convolutions, not behind them, and nothing stands on the way from
one unit's sum to the next one's. So the stem and the last convolution of a unit have biases, and the last sum is
normalised before it is pooled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.resnet_v1 import (
    BATCH_NORM,
    UNITS,
    Unit,
    blocks_of,
    classified,
    for_imagenet,
    stacked,
    stem,
)
from moxing.tensorflow.network_registry import Network


def resnet_v2(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    name: str,
    units: Sequence[int],
    output_stride: int | None = None,
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """The pre-activation ResNet with that many units in its four blocks; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      name: scope of the variables.
      units: number of units of every block.
      output_stride: see `resnet_v1.blocks_of`.
      global_pool: false keeps height and width, for dense prediction.
      spatial_squeeze: false keeps the axes of height and width of the logits, of length 1 after global pooling.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     resnet_v2(net, tf.zeros([2, 64, 64, 3]), 10, name='small', units=(1, 1, 1, 1)).shape
      TensorShape([2, 10])
    """
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    with net.scope(name):
        x = stem(net.styled(batch_norm=None, activation=None), images)
        x = stacked(net, x, blocks_of(units, output_stride), _bottleneck)
        x = net.batch_norm(x, scope="postnorm", activation=tf.nn.relu)
        return classified(net, x, num_classes, global_pool, spatial_squeeze)


def _bottleneck(net: Layers, x: tf.Tensor, unit: Unit) -> tf.Tensor:
    """1x1, 3x3, 1x1 on the activated input; the shortcut is the input itself, where it has the unit's depth."""
    with net.scope("bottleneck_v2"):
        activated = net.batch_norm(x, scope="preact", activation=tf.nn.relu)
        bare = net.styled(batch_norm=None, activation=None)
        if net.channels(x) != unit.depth:
            shortcut = bare.conv(activated, unit.depth, 1, stride=unit.stride, scope="shortcut")
        else:
            shortcut = net.subsampled(x, unit.stride)
        residual = net.conv(activated, unit.depth // 4, 1, scope="conv1")
        residual = net.styled(padding="FIXED").conv(
            residual, unit.depth // 4, 3, stride=unit.stride, rate=unit.rate, scope="conv2"
        )
        residual = bare.conv(residual, unit.depth, 1, scope="conv3")
        return net.collected(shortcut + residual)


NETWORKS: dict[str, Network] = {
    name: for_imagenet(name, partial(resnet_v2, name=name, units=units))
    for name, units in ((f"resnet_v2_{layers}", units) for layers, units in UNITS.items())
}
