"""ResNet: He et al., "Deep residual learning for image recognition" (2015), as TF-Slim published it.

A unit adds what its convolutions make of its input to the input itself. The convolutions are 1x1, 3x3, 1x1
("bottleneck") and the strides stand in the last unit of a block, where the paper has them in the first one of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.batch_norm import BatchNorm
from moxing.tensorflow.nets.layers import Layers
from moxing.tensorflow.nets.network import Network
from moxing.tensorflow.nets.strides import strides_and_rates

BATCH_NORM = BatchNorm(decay=0.997, epsilon=1e-5)

#: The number of units of every block, by the number of layers.
UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}


class Unit(NamedTuple):
    """One residual unit: depth of its output, stride, distance of the taps of its 3x3 convolution."""

    depth: int
    stride: int = 1
    rate: int = 1


def blocks_of(
    units: Sequence[int],
    output_stride: int | None = None,
    first_unit_strides: bool = False,
    first_depth: int = 256,
) -> list[list[Unit]]:
    """The blocks of a ResNet with that many units each.

    Args:
      units: the number of units of every block.
      output_stride: the image shrinks to 1 / output_stride and no further: the strides behind that become distances
        between the taps; None is 32, no bound.
      first_unit_strides: every block but the first begins with a stride, instead of every block but the last ending
        with it.
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
    # The stem comes first and shrinks the image to a quarter.
    _, *places = strides_and_rates([4, *strides], output_stride)
    remaining = iter(places)
    return [
        [Unit(first_depth * 2**number, *place) for place in islice(remaining, count)]
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
    """The ResNet with that many units in its four blocks; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: None for features.
      name: the scope.
      units: the number of units of every block.
      output_stride: see `blocks_of`.
      global_pool: False keeps height and width, for dense prediction.
      spatial_squeeze: drop height and width of the logits; they are 1 after global pooling.
    """
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    with net.scope(name):
        x = stem(net, images)
        x = stacked(net, x, blocks_of(units, output_stride), bottleneck)
        return classified(net, x, num_classes, global_pool, spatial_squeeze)


def stem(net: Layers, images: tf.Tensor) -> tf.Tensor:
    """What all ResNets for large images begin with: the image shrinks to a quarter."""
    x = net.conv(images, 64, 7, stride=2, scope="conv1", padding="FIXED")
    return net.max_pool(x, 3, stride=2, padding="SAME")


def stacked(
    net: Layers, x: tf.Tensor, blocks: list[list[Unit]], unit_of: Callable[[Layers, tf.Tensor, Unit], tf.Tensor]
) -> tf.Tensor:
    """The blocks, one behind the other; `unit_of` builds a unit."""
    for number, block in enumerate(blocks, start=1):
        with net.scope(f"block{number}"):
            for index, unit in enumerate(block, start=1):
                with net.scope(f"unit_{index}"):
                    x = unit_of(net, x, unit)
            net.collected(x)
    return x


def bottleneck(net: Layers, x: tf.Tensor, unit: Unit, last_batch_norm: BatchNorm = BATCH_NORM) -> tf.Tensor:
    """1x1, 3x3, 1x1: the outer ones have a quarter of the unit's depth as output and input."""
    with net.scope("bottleneck_v1"):
        shortcut = shortcut_of(net, x, unit.depth, unit.stride)
        residual = net.conv(x, unit.depth // 4, 1, scope="conv1")
        residual = net.conv(
            residual, unit.depth // 4, 3, stride=unit.stride, rate=unit.rate, scope="conv2", padding="FIXED"
        )
        residual = net.conv(residual, unit.depth, 1, scope="conv3", activation=None, batch_norm=last_batch_norm)
        return net.collected(tf.nn.relu(shortcut + residual))


def shortcut_of(net: Layers, x: tf.Tensor, depth: int, stride: int) -> tf.Tensor:
    """The unit's input in the size and depth of its output."""
    if net.channels(x) != depth:
        return net.conv(x, depth, 1, stride=stride, scope="shortcut", activation=None)
    return net.subsampled(x, stride)


def classified(
    net: Layers,
    x: tf.Tensor,
    num_classes: int | None,
    global_pool: bool,
    spatial_squeeze: bool,
    initializer: Any = None,
) -> tf.Tensor:
    """The end of a ResNet: pooling, logits whose weights begin by `initializer` (None: the style's), predictions."""
    if global_pool:
        x = net.end_point("global_pool", net.global_pool(x))
    if num_classes is None:
        return x
    x = net.conv(x, num_classes, 1, scope="logits", activation=None, batch_norm=None, initializer=initializer)
    if spatial_squeeze and global_pool:
        x = net.collected(net.squeeze(x), "spatial_squeeze")
    net.end_point("predictions", net.softmax(x))
    return x


def for_imagenet(name: str, architecture: Callable[..., tf.Tensor]) -> Network:
    """A network of this kind for photos; `name` is also its scope."""
    return Network(architecture, scope=name, image_size=224, logits_pattern="logits", labels_offset=1)


NETWORKS: dict[str, Network] = {
    name: for_imagenet(name, partial(resnet_v1, name=name, units=units))
    for name, units in ((f"resnet_v1_{layers}", units) for layers, units in UNITS.items())
}
