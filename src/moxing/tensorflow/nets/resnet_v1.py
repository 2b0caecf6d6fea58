"""ResNet: He et al., "Deep residual learning for image recognition" (2015), as TF-Slim published it.

A unit adds the output of its convolutions to its input. The convolutions are 1x1, 3x3, 1x1 ("bottleneck"). The strides
are in the last unit of a block; the paper has them in the first unit of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.parts.strides import strides_and_rates
from moxing.tensorflow.network_registry import Network

BATCH_NORM = BatchNorm(decay=0.997, epsilon=1e-5)

#: The number of units of every block, by the number of layers.
UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}


class Unit(NamedTuple):
    """One residual unit: depth of its output, stride, dilation rate of its 3x3 convolution."""

    depth: int
    stride: int = 1
    rate: int = 1


def blocks_of(
    units: Sequence[int],
    output_stride: int | None = None,
    first_unit_strides: bool = False,
    first_depth: int = 256,
) -> list[list[Unit]]:
    """Returns the blocks of a ResNet.

    Args:
      units: number of units of every block.
      output_stride: the resolution is reduced to 1 / output_stride and no further: later strides become dilation;
        None: 32, no bound.
      first_unit_strides: true if the strides are in the first units of blocks 2 to 4, false if they are in the last
        units of blocks 1 to 3.
      first_depth: depth of the first block's units; it doubles from block to block.

    Example:
      >>> blocks_of([1, 2, 1, 1])[1]
      [Unit(depth=512, stride=1, rate=1), Unit(depth=512, stride=2, rate=1)]
    """
    if output_stride is not None and output_stride not in (4, 8, 16, 32):
        raise ValueError(f"output_stride={output_stride!r}: expected 4, 8, 16, 32 or None.")
    strides = []
    for number, count in enumerate(units):
        if first_unit_strides:
            strides += [1 if number == 0 else 2, *[1] * (count - 1)]
        else:
            strides += [*[1] * (count - 1), 1 if number == len(units) - 1 else 2]
    # The stem comes first and has a stride of 4.
    _, *unit_strides = strides_and_rates([4, *strides], output_stride)
    remaining = iter(unit_strides)
    return [
        [Unit(first_depth * 2**number, *stride_and_rate) for stride_and_rate in islice(remaining, count)]
        for number, count in enumerate(units)
    ]


def resnet_v1(
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
    """A ResNet with four blocks; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      name: scope of the variables.
      units: number of units of every block.
      output_stride: see `blocks_of`.
      global_pool: false keeps height and width, for dense prediction.
      spatial_squeeze: false keeps the axes of height and width of the logits, of length 1 after global pooling.
    """
    blocks = blocks_of(units, output_stride)
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    with net.scope(name):
        x = stacked(net, stem(net, images), blocks, bottleneck)
        return classified(net, x, num_classes, global_pool, spatial_squeeze)


def stem(net: Layers, images: tf.Tensor) -> tf.Tensor:
    """The first layers of all ResNets for large images, with a stride of 4."""
    x = net.styled(padding="FIXED").conv(images, 64, 7, stride=2, scope="conv1")
    return net.max_pool(x, 3, stride=2, padding="SAME")


def stacked(
    net: Layers, x: tf.Tensor, blocks: list[list[Unit]], unit_of: Callable[[Layers, tf.Tensor, Unit], tf.Tensor]
) -> tf.Tensor:
    """Builds the blocks one after the other; `unit_of` builds a unit."""
    for number, block in enumerate(blocks, start=1):
        with net.scope(f"block{number}"):
            for index, unit in enumerate(block, start=1):
                with net.scope(f"unit_{index}"):
                    x = unit_of(net, x, unit)
            net.collected(x)
    return x


def bottleneck(net: Layers, x: tf.Tensor, unit: Unit, last_batch_norm: BatchNorm = BATCH_NORM) -> tf.Tensor:
    """1x1, 3x3, 1x1: the inner depth is a quarter of the unit's."""
    with net.scope("bottleneck_v1"):
        shortcut = shortcut_of(net, x, unit.depth, unit.stride)
        residual = net.conv(x, unit.depth // 4, 1, scope="conv1")
        residual = net.styled(padding="FIXED").conv(
            residual, unit.depth // 4, 3, stride=unit.stride, rate=unit.rate, scope="conv2"
        )
        residual = net.styled(activation=None, batch_norm=last_batch_norm).conv(residual, unit.depth, 1, scope="conv3")
        return net.collected(tf.nn.relu(shortcut + residual))


def shortcut_of(net: Layers, x: tf.Tensor, depth: int, stride: int) -> tf.Tensor:
    """Returns the unit's input in the size and depth of its output."""
    if net.channels(x) != depth:
        return net.styled(activation=None).conv(x, depth, 1, stride=stride, scope="shortcut")
    return net.subsampled(x, stride)


def classified(
    net: Layers,
    x: tf.Tensor,
    num_classes: int | None,
    global_pool: bool,
    spatial_squeeze: bool,
    initializer: Any = None,
) -> tf.Tensor:
    """The last layers of a ResNet: pooling, logits (with the style's initializer by default), predictions."""
    if global_pool:
        x = net.end_point("global_pool", net.global_pool(x))
    if num_classes is None:
        return x
    logits = net.styled(activation=None, batch_norm=None, initializer=initializer or net.style.initializer)
    x = logits.conv(x, num_classes, 1, scope="logits")
    if spatial_squeeze and global_pool:
        x = net.collected(net.squeeze(x), "spatial_squeeze")
    net.end_point("predictions", net.softmax(x))
    return x


def for_imagenet(name: str, architecture: Callable[..., tf.Tensor]) -> Network:
    """Returns the `Network` of a ResNet for ImageNet; `name` is also its scope."""
    return Network(architecture, scope=name, image_size=224, logits_pattern="logits", labels_offset=1)


NETWORKS: dict[str, Network] = {
    name: for_imagenet(name, partial(resnet_v1, name=name, units=units))
    for name, units in ((f"resnet_v1_{layers}", units) for layers, units in UNITS.items())
}
