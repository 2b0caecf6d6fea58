"""Xception as DeepLab modified it: Chen et al., "Encoder-decoder with atrous separable convolution for semantic image
segmentation" (2018), after Chollet, "Xception: deep learning with depthwise separable convolutions" (2016).

A unit is three separable convolutions and a shortcut around them. Against the original a separable convolution with a
stride stands in the place of every max pooling, a depthwise convolution is normalised too, and the network is deeper.
The names of the variables are those of DeepLab's checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.parts.strides import strides_and_rates
from moxing.tensorflow.network_registry import Network

BATCH_NORM = BatchNorm(decay=0.9997, epsilon=1e-3)
INITIALIZER = tf.truncated_normal_initializer(stddev=0.09)


class Block(NamedTuple):
    """A block of equal units.

    Attributes:
      scope: its name.
      depths: of the three separable convolutions.
      stride: of the last of them.
      shortcut: what is added to their output: `conv`, a 1x1 convolution of the input, `sum`, the input itself, or
        `none`.
      units: how many there are.
    """

    scope: str
    depths: tuple[int, int, int]
    stride: int = 1
    shortcut: str = "conv"
    units: int = 1


#: Depth and stride of the blocks of the entry flow.
ENTRY = ((128, 2), (256, 2), (728, 2))
DEEP_ENTRY = ((128, 2), (256, 1), (256, 2), (728, 1), (728, 2))


def blocks_of(entry: Sequence[tuple[int, int]], middle_units: int) -> list[Block]:
    """The blocks of an Xception: entry flow, middle flow, exit flow.

    Example:
      >>> [block.scope for block in blocks_of(ENTRY, middle_units=8)][2:]
      ['entry_flow/block3', 'middle_flow/block1', 'exit_flow/block1', 'exit_flow/block2']
    """
    return [
        *(
            Block(f"entry_flow/block{number}", (depth, depth, depth), stride)
            for number, (depth, stride) in enumerate(entry, start=1)
        ),
        Block("middle_flow/block1", (728, 728, 728), shortcut="sum", units=middle_units),
        Block("exit_flow/block1", (728, 1024, 1024), stride=2),
        Block("exit_flow/block2", (1536, 1536, 2048), shortcut="none"),
    ]


def xception(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    name: str,
    blocks: Sequence[Block],
    output_stride: int | None = None,
    multi_grid: Sequence[int] = (1, 1, 1),
    dropout_keep_prob: float = 0.5,
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """The Xception with those blocks; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      name: scope of the variables.
      blocks: see `blocks_of`.
      output_stride: see `strides_and_rates`.
      multi_grid: factors of the distances between the taps of the last three separable convolutions.
      dropout_keep_prob: probability of keeping a feature before the logits, in training.
      global_pool: false keeps height and width, for dense prediction.
      spatial_squeeze: false keeps the axes of height and width of the logits, of length 1 after global pooling.
    """
    if len(multi_grid) != 3 or min(multi_grid) < 1:
        raise ValueError(f"multi_grid={multi_grid!r}: expected three numbers of at least 1.")
    (first_stride, _), *strides = strides_and_rates([2, *(block.stride for block in blocks)], output_stride)
    net = net.styled(batch_norm=BATCH_NORM, initializer=INITIALIZER, collect=True)
    with net.scope(name):
        x = net.styled(padding="FIXED").conv(images, 32, 3, stride=first_stride, scope="entry_flow/conv1_1")
        x = net.conv(x, 64, 3, scope="entry_flow/conv1_2")
        for block, (stride, rate) in zip(blocks, strides, strict=True):
            rates = [rate * factor for factor in (multi_grid if block is blocks[-1] else (1, 1, 1))]
            with net.scope(block.scope):
                for number in range(1, block.units + 1):
                    with net.scope(f"unit_{number}"):
                        x = unit(net, x, block, stride, rates)
                net.collected(x)
        if global_pool:
            x = net.end_point("global_pool", net.global_pool(x))
        if num_classes is None:
            return x
        x = net.dropout(x, dropout_keep_prob)
        x = net.styled(activation=None, batch_norm=None).conv(x, num_classes, 1, scope="logits")
        if spatial_squeeze and global_pool:
            x = net.squeeze(x)
        net.end_point("predictions", net.softmax(x))
        return x


def unit(net: Layers, x: tf.Tensor, block: Block, stride: int, rates: Sequence[int]) -> tf.Tensor:
    """Three separable convolutions, the last one with the stride, and the shortcut.

    An activation stands before each of them, so that none cuts off the sum. Where there is no sum it stands behind each
    depthwise and each pointwise convolution instead.
    """
    behind = block.shortcut == "none"
    with net.scope("xception_module"):
        inner = net.styled(activation=tf.nn.relu if behind else None)
        y = x
        for index, (depth, rate) in enumerate(zip(block.depths, rates, strict=True)):
            y = y if behind else tf.nn.relu(y)
            y = separable(inner, y, depth, stride if index == 2 else 1, rate, f"separable_conv{index + 1}")
        if block.shortcut == "conv":
            y += net.styled(activation=None).conv(x, block.depths[2], 1, stride=stride, scope="shortcut")
        elif block.shortcut == "sum":
            y += x
        return net.collected(y)


def separable(net: Layers, x: tf.Tensor, depth: int, stride: int, rate: int, scope: str) -> tf.Tensor:
    """A depthwise and a pointwise convolution as two layers, each of them normalised."""
    # The shortcut takes every second pixel from the first one; with fixed padding the kernel is centered on the same.
    padding = "SAME" if stride == 1 else "FIXED"
    x = net.styled(padding=padding).depthwise(x, 3, stride=stride, rate=rate, scope=f"{scope}_depthwise")
    return net.conv(x, depth, 1, scope=f"{scope}_pointwise")


NETWORKS: dict[str, Network] = {
    name: Network(
        partial(xception, name=name, blocks=blocks),
        scope=name,
        image_size=299,
        logits_pattern="logits",
        preprocessing="inception",
    )
    for name, blocks in {
        "xception_41": blocks_of(ENTRY, middle_units=8),
        "xception_65": blocks_of(ENTRY, middle_units=16),
        "xception_71": blocks_of(DEEP_ENTRY, middle_units=16),
    }.items()
}
