"""ResNet-50 of octave convolutions: Chen et al., "Drop an octave" (2019).

A part `alpha` of the channels, the low frequencies, is kept at half the height and width. An octave convolution has a
part for each way: high to high, high to low (the means of 2x2 pixels are convolved), low to high (every pixel of the
result is repeated 2x2) and low to low. Together they have as many weights as one plain convolution. A stride is the
mean of 2x2 pixels before the convolution.

The stem is plain. The first unit's convolutions make both maps of its output, blocks 1 to 3 keep both, and the first
convolutions of block 4 make one map again, as in the authors' network.

Any size will do: of an odd height the low map has half, rounded up, the last mean is one of fewer pixels, and what is
repeated too often on the way back is cut off.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.resnet_v1 import BATCH_NORM, UNITS, Unit, blocks_of, classified, for_imagenet, stem
from moxing.tensorflow.network_registry import Network


class Octave(NamedTuple):
    """Two maps of an image: one in full size, and one in half the height and width or None."""

    high: tf.Tensor
    low: tf.Tensor | None


def resnet_v1_50_oct(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    alpha: float = 0.25,
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """ResNet-50 of octave convolutions; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      alpha: fraction of low-frequency channels, at least 0 and less than 1.
      global_pool: false keeps height and width, for dense prediction.
      spatial_squeeze: false keeps the axes of height and width of the logits, of length 1 after global pooling.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     logits = resnet_v1_50_oct(net, tf.zeros([2, 64, 64, 3]), 10)
      ...     [net.end_points[f'resnet_v1_50_oct/block1/{part}'].shape for part in ('high', 'low')]
      [TensorShape([2, 16, 16, 192]), TensorShape([2, 8, 8, 64])]
    """
    if not isinstance(alpha, (int, float)) or not 0 <= alpha < 1:
        raise ValueError(f"alpha={alpha!r}: expected a number from 0 to less than 1.")
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    blocks = blocks_of(UNITS[50], first_unit_strides=True)
    with net.scope("resnet_v1_50_oct"):
        x = Octave(stem(net, images), None)
        for number, block in enumerate(blocks, start=1):
            with net.scope(f"block{number}"):
                for index, unit in enumerate(block, start=1):
                    with net.scope(f"unit_{index}"):
                        x = _bottleneck(net, x, unit, alpha if number < len(blocks) else 0.0)
                _collected(net, x)
        return classified(net, x.high, num_classes, global_pool, spatial_squeeze)


def _bottleneck(net: Layers, x: Octave, unit: Unit, alpha: float) -> Octave:
    """The unit of a ResNet, with octave convolutions; `alpha` is the fraction of low-frequency channels."""

    def conv(x: Octave, depth: int, kernel: int, stride: int = 1, *, scope: str, layers: Layers = net) -> Octave:
        low_depth = int(alpha * depth)
        return octave_conv(layers, x, (depth - low_depth, low_depth), kernel, stride, scope=scope)

    linear = net.styled(activation=None)
    with net.scope("bottleneck_v1"):
        shortcut = x
        if _depth(net, x) != unit.depth:
            shortcut = conv(x, unit.depth, 1, unit.stride, scope="shortcut", layers=linear)
        residual = conv(x, unit.depth // 4, 1, scope="conv1")
        residual = conv(residual, unit.depth // 4, 3, unit.stride, scope="conv2")
        residual = conv(residual, unit.depth, 1, scope="conv3", layers=linear)
        low = None if residual.low is None else tf.nn.relu(shortcut.low + residual.low)
        return _collected(net, Octave(tf.nn.relu(shortcut.high + residual.high), low))


def octave_conv(
    net: Layers,
    x: Octave,
    depths: tuple[int, int],
    kernel: int,
    stride: int = 1,
    *,
    scope: str,
) -> Octave:
    """An octave convolution with batch normalisation and the style's activation.

    Args:
      net: the layers.
      x: the input.
      depths: number of output channels of the high and of the low map; 0: the output has no low map.
      kernel: size of the kernel.
      stride: 1 or 2.
      scope: name of the layer.

    Example:
      >>> with tf.Graph().as_default():
      ...     plain = Octave(tf.zeros([1, 9, 9, 8]), None)
      ...     both = octave_conv(Layers(training=False), plain, (12, 4), 3, scope='conv')
      ...     both.high.shape, both.low.shape
      (TensorShape([1, 9, 9, 12]), TensorShape([1, 5, 5, 4]))
    """
    high_depth, low_depth = depths
    part = partial(net.styled(collect=False, activation=None, batch_norm=None, biases=False).conv, kernel=kernel)
    with net.scope(scope):
        high, low = x
        if stride == 2:
            high = _halved(net, high)
        to_high = part(high, high_depth, scope="high_to_high")
        if low is not None:
            from_low = part(low, high_depth, scope="low_to_high")
            # After a stride the high map has the size that the low one had.
            to_high += from_low if stride == 2 else _repeated(net, from_low, to_high)
        to_low = None
        if low_depth:
            to_low = part(_halved(net, high), low_depth, scope="high_to_low")
            if low is not None:
                to_low += part(_halved(net, low) if stride == 2 else low, low_depth, scope="low_to_low")
            to_low = net.batch_norm(to_low, scope="low/BatchNorm", activation=net.style.activation)
        to_high = net.batch_norm(to_high, scope="high/BatchNorm", activation=net.style.activation)
        return _collected(net, Octave(to_high, to_low))


def _halved(net: Layers, x: tf.Tensor) -> tf.Tensor:
    """2x2 average pooling; at an odd edge of the existing pixels."""
    return net.avg_pool(x, 2, stride=2, padding="SAME")


def _repeated(net: Layers, x: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Repeats every pixel 2x2 times, cropped to the size of `like`."""
    height, width = net.spatial_axes
    shape = tf.shape(like)
    # One operation, for NHWC only, which is three times as fast as repeating.
    x = tf.image.resize_nearest_neighbor(net.channels_last(x), tf.stack([shape[height], shape[width]]))
    return tf.transpose(x, [0, 3, 1, 2]) if net.data_format == "NCHW" else x


def _depth(net: Layers, x: Octave) -> int:
    return sum(net.channels(part) for part in x if part is not None)


def _collected(net: Layers, x: Octave) -> Octave:
    """Collects both maps as end points, or the only one under the plain name."""
    if x.low is None:
        net.collected(x.high)
    else:
        net.collected(x.high, "high")
        net.collected(x.low, "low")
    return x


NETWORKS: dict[str, Network] = {"resnet_v1_50_oct": for_imagenet("resnet_v1_50_oct", resnet_v1_50_oct)}
