"""ResNeXt: Xie et al., "Aggregated residual transformations for deep neural networks" (2016), 32x4d.

A unit is that of a ResNet, but its 3x3 convolution works on 32 groups of channels (of 4 each in the first block) that
do not see each other. The paper's figure 3 writes the same unit in three ways, and two of them are here. They compute
the same; their variables differ.

- Form B: 32 paths, each with weights of its own, joined before one 1x1 convolution. The first 1x1 convolutions of the
  paths have the same input, and so they are one convolution whose output is split.
- Form C: one grouped convolution, with one variable.

A block's stride stands in its first unit, on the 3x3 convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    shortcut_of,
    stacked,
    stem,
)
from moxing.tensorflow.network_registry import Network

#: The paper's "cardinality".
PATHS = 32

Grouped = Callable[[Layers, tf.Tensor, Unit], tf.Tensor]


def resnext(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    name: str,
    units: Sequence[int],
    grouped: Grouped,
    output_stride: int | None = None,
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """The ResNeXt with that many units in its four blocks; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      name: scope of the variables.
      units: number of units of every block.
      grouped: the 3x3 convolution in groups, `form_b` or `form_c`.
      output_stride: see `resnet_v1.blocks_of`.
      global_pool: false keeps height and width, for dense prediction.
      spatial_squeeze: false keeps the axes of height and width of the logits, of length 1 after global pooling.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     resnext(net, tf.zeros([2, 64, 64, 3]), 10, name='small', units=(1, 1, 1, 1), grouped=form_c).shape
      TensorShape([2, 10])
    """
    net = net.styled(batch_norm=BATCH_NORM, collect=True)
    blocks = blocks_of(units, output_stride, first_unit_strides=True)
    with net.scope(name):
        x = stem(net, images)
        x = stacked(net, x, blocks, partial(_bottleneck, grouped=grouped))
        return classified(net, x, num_classes, global_pool, spatial_squeeze)


def _bottleneck(net: Layers, x: tf.Tensor, unit: Unit, grouped: Grouped) -> tf.Tensor:
    """1x1, 3x3 in groups, 1x1: twice as wide inside as a ResNet's unit."""
    with net.scope("bottleneck"):
        shortcut = shortcut_of(net, x, unit.depth, unit.stride)
        residual = net.conv(x, unit.depth // 2, 1, scope="conv1")
        residual = grouped(net, residual, unit)
        residual = net.styled(activation=None).conv(residual, unit.depth, 1, scope="conv3")
        return net.collected(tf.nn.relu(shortcut + residual))


def form_b(net: Layers, x: tf.Tensor, unit: Unit) -> tf.Tensor:
    """The grouped 3x3 convolution as 32 convolutions with weights of their own."""
    path = net.styled(padding="FIXED", batch_norm=None, biases=False, activation=None, collect=False)
    with net.scope("conv2"):
        paths = [
            path.conv(part, net.channels(part), 3, stride=unit.stride, rate=unit.rate, scope=f"path_{number}")
            for number, part in enumerate(tf.split(x, PATHS, net.channel_axis), start=1)
        ]
        return net.collected(net.batch_norm(net.concat(paths), activation=tf.nn.relu))


def form_c(net: Layers, x: tf.Tensor, unit: Unit) -> tf.Tensor:
    """The grouped 3x3 convolution as one layer."""
    return net.styled(padding="FIXED", groups=PATHS).conv(
        x, net.channels(x), 3, stride=unit.stride, rate=unit.rate, scope="conv2"
    )


def _network(form: str, grouped: Grouped, layers: int) -> tuple[str, Network]:
    name = f"resnext_{form}_{layers}"
    return name, for_imagenet(name, partial(resnext, name=name, units=UNITS[layers], grouped=grouped))


NETWORKS: dict[str, Network] = dict(
    _network(form, grouped, layers) for form, grouped in (("b", form_b), ("c", form_c)) for layers in (50, 101)
)
