"""The small ResNets of He et al., "Deep residual learning for image recognition" (2015): units of two 3x3 convolutions.

`resnet_v1_18` is the paper's smallest network for ImageNet (table 1), with projections where the depth changes
(option B). `resnet_v1_20` and `resnet_v1_110` are its networks for CIFAR-10 (section 4.2), 6n + 2 layers with n = 3 and
18, whose shortcuts have no weights: they take every second pixel and fill the missing channels with zeros (option A).

As in the paper a block's stride stands in its first unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.resnet_v1 import (
    BATCH_NORM,
    Unit,
    blocks_of,
    classified,
    for_imagenet,
    shortcut_of,
    stacked,
    stem,
)
from moxing.tensorflow.network_registry import Network

Shortcut = Callable[[Layers, tf.Tensor, int, int], tf.Tensor]


def resnet_v1_imagenet(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    name: str,
    units: Sequence[int],
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """A ResNet for large images with four blocks; see `resnet_v1.resnet_v1`.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     resnet_v1_imagenet(net, tf.zeros([2, 64, 64, 3]), 10, name='small', units=(1, 1, 1, 1)).shape
      TensorShape([2, 10])
    """
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    blocks = blocks_of(units, first_unit_strides=True, first_depth=64)
    with net.scope(name):
        x = stem(net, images)
        x = stacked(net, x, blocks, partial(_basic, shortcut=shortcut_of))
        return classified(net, x, num_classes, global_pool, spatial_squeeze)


def resnet_v1_cifar(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    name: str,
    units: Sequence[int],
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """A ResNet for images of 32x32, with three blocks; see `resnet_v1.resnet_v1`.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     logits = resnet_v1_cifar(net, tf.zeros([2, 32, 32, 3]), 10, name='small', units=(1, 1, 1))
      ...     net.end_points['small/block3'].shape, logits.shape
      (TensorShape([2, 8, 8, 64]), TensorShape([2, 10]))
    """
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    blocks = blocks_of(units, first_unit_strides=True, first_depth=16)
    with net.scope(name):
        x = net.conv(images, 16, 3, scope="conv1")
        x = stacked(net, x, blocks, partial(_basic, shortcut=_padded))
        return classified(net, x, num_classes, global_pool, spatial_squeeze)


def _basic(net: Layers, x: tf.Tensor, unit: Unit, shortcut: Shortcut) -> tf.Tensor:
    """Two 3x3 convolutions, the first one with the stride."""
    with net.scope("basic_v1"):
        around = shortcut(net, x, unit.depth, unit.stride)
        residual = net.styled(padding="FIXED").conv(x, unit.depth, 3, stride=unit.stride, scope="conv1")
        residual = net.styled(activation=None).conv(residual, unit.depth, 3, scope="conv2")
        return net.collected(tf.nn.relu(around + residual))


def _padded(net: Layers, x: tf.Tensor, depth: int, stride: int) -> tf.Tensor:
    """Option A: every `stride`-th pixel, padded with channels of zeros."""
    x = net.subsampled(x, stride)
    missing = depth - net.channels(x)
    if not missing:
        return x
    paddings = [[0, 0]] * 4
    paddings[net.channel_axis] = [missing // 2, missing - missing // 2]
    return tf.pad(x, paddings)


def _cifar_network(name: str, n: int) -> Network:
    # CIFAR has no background class, and no weights were published: labels stay as they are.
    architecture = partial(resnet_v1_cifar, name=name, units=(n, n, n))
    return Network(architecture, scope=name, image_size=32, logits_pattern="logits", preprocessing="cifarnet")


NETWORKS: dict[str, Network] = {
    "resnet_v1_18": for_imagenet("resnet_v1_18", partial(resnet_v1_imagenet, name="resnet_v1_18", units=(2, 2, 2, 2))),
    "resnet_v1_20": _cifar_network("resnet_v1_20", 3),
    "resnet_v1_110": _cifar_network("resnet_v1_110", 18),
}
