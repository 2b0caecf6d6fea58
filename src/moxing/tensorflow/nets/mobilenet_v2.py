"""MobileNet V2: Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks" (2018).

A block makes its input six times as deep, convolves every channel by itself, and brings the depth down again without an
activation. Where the shape stays, the input is added to the output: the residual path runs between the shallow ends.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.mobilenet_v1 import INITIALIZER, check_depths, classified
from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.parts.strides import strides_and_rates
from moxing.tensorflow.network_registry import Network

BATCH_NORM = BatchNorm(decay=0.997, epsilon=1e-3)

#: Depth and stride of the first convolution.
FIRST = (32, 2)

#: Depth of the last convolution, the 1x1 behind the blocks.
LAST_DEPTH = 1280


class Block(NamedTuple):
    """One block: expansion factor, depth of its output, stride."""

    expansion: int
    depth: int
    stride: int = 1


BLOCKS = (
    Block(1, 16),
    *(Block(6, 24, 2), Block(6, 24)),
    *(Block(6, 32, 2), *[Block(6, 32)] * 2),
    *(Block(6, 64, 2), *[Block(6, 64)] * 3),
    *[Block(6, 96)] * 3,
    *(Block(6, 160, 2), *[Block(6, 160)] * 2),
    Block(6, 320),
)


def mobilenet_v2(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    depth_multiplier: float = 1.0,
    finegrain_classification_mode: bool = False,
    min_depth: int = 8,
    divisible_by: int = 8,
    output_stride: int | None = None,
    dropout_keep_prob: float = 0.8,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """MobileNet V2; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      depth_multiplier: factor of all depths.
      finegrain_classification_mode: the last convolution keeps its depth where `depth_multiplier` is less than 1.
      min_depth: no layer gets fewer channels.
      divisible_by: depths are rounded to multiples of it.
      output_stride: see `strides_and_rates`.
      dropout_keep_prob: probability of keeping a feature before the logits, in training.
      spatial_squeeze: false keeps the axes of height and width of the logits, of length 1.
    """
    check_depths(depth_multiplier, min_depth)
    if divisible_by < 1:
        raise ValueError(f"divisible_by={divisible_by!r}: expected at least 1.")

    def scaled(depth: int) -> int:
        return rounded(depth * depth_multiplier, divisible_by, min_depth)

    net = net.styled(batch_norm=BATCH_NORM, initializer=INITIALIZER, activation=tf.nn.relu6)
    strides = strides_and_rates([FIRST[1], *(block.stride for block in BLOCKS)], output_stride)
    with net.scope("MobilenetV2"):
        x = net.conv(images, scaled(FIRST[0]), 3, stride=strides[0][0], scope="Conv")
        net.end_point("layer_1", x)
        for index, block in enumerate(BLOCKS):
            with net.scope(f"expanded_conv_{index}" if index else "expanded_conv"):
                x = inverted_residual(net, x, block, scaled(block.depth), strides[index + 1], f"layer_{index + 2}")
        keeps_depth = finegrain_classification_mode and depth_multiplier < 1
        x = net.conv(x, LAST_DEPTH if keeps_depth else scaled(LAST_DEPTH), 1, scope="Conv_1")
        net.end_point(f"layer_{len(BLOCKS) + 2}", x)
        pooled = net.end_point("global_pool", net.global_pool(x))
        return classified(net, pooled, num_classes, dropout_keep_prob, spatial_squeeze)


def inverted_residual(
    net: Layers, x: tf.Tensor, block: Block, depth: int, stride_and_rate: tuple[int, int], layer: str
) -> tf.Tensor:
    """One block: 1x1 up, 3x3 depthwise, 1x1 down without an activation.

    Args:
      net: the layers.
      x: the input.
      block: the block as published.
      depth: its depth after `depth_multiplier`.
      stride_and_rate: its stride and dilation rate after `output_stride`.
      layer: prefix of the names of its end points.
    """
    stride, rate = stride_and_rate
    shallow = x
    if block.expansion > 1:
        # Always divisible by 8, as in the published networks.
        x = net.conv(x, rounded(net.channels(x) * block.expansion, 8, 8), 1, scope="expand")
        net.end_point(f"{layer}/expansion_output", x)
    x = net.depthwise(x, 3, stride=stride, rate=rate, scope="depthwise")
    net.end_point(f"{layer}/depthwise_output", x)
    x = net.styled(activation=None).conv(x, depth, 1, scope="project")
    # The published stride: output_stride must not change the architecture.
    if block.stride == 1 and net.channels(shallow) == depth:
        x = x + shallow
    net.end_point(f"{layer}/output", x)
    return net.end_point(layer, x)


def rounded(depth: float, divisible_by: int, least: int) -> int:
    """Rounds `depth` to a multiple of `divisible_by`, at least `least`, and at least 90% of `depth`.

    Example:
      >>> rounded(33.6, 8, 8), rounded(11.2, 8, 8), rounded(5.6, 8, 8)
      (32, 16, 8)
    """
    nearest = max(least, int(depth + divisible_by / 2) // divisible_by * divisible_by)
    return nearest if nearest >= 0.9 * depth else nearest + divisible_by


NETWORKS: dict[str, Network] = {
    name: Network(
        partial(mobilenet_v2, depth_multiplier=multiplier, finegrain_classification_mode=multiplier < 1),
        scope="MobilenetV2",
        image_size=224,
        logits_pattern="Logits",
        preprocessing="inception",
    )
    for name, multiplier in {"mobilenet_v2": 1.0, "mobilenet_v2_140": 1.4, "mobilenet_v2_035": 0.35}.items()
}
