"""MobileNet V2: Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks" (2018).

A block makes its input six times as deep, convolves every channel by itself, and brings the depth down again without an
activation. Where the shape stays, the input is added to the output: the residual path runs between the shallow ends.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.batch_norm import BatchNorm
from moxing.tensorflow.nets.layers import Layers
from moxing.tensorflow.nets.mobilenet_v1 import INITIALIZER, check_depths, classified
from moxing.tensorflow.nets.network import Network
from moxing.tensorflow.nets.strides import strides_and_rates

BATCH_NORM = BatchNorm(decay=0.997, epsilon=1e-3)

#: Depth and stride of the first convolution.
FIRST = (32, 2)

#: Depth of the last convolution, the 1x1 behind the blocks.
LAST_DEPTH = 1280


class Block(NamedTuple):
    """One block: how many times as deep it is inside, depth of its output, stride."""

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
      num_classes: None for features.
      depth_multiplier: factor of all depths.
      finegrain_classification_mode: the last convolution keeps its depth where `depth_multiplier` is less than 1.
      min_depth: no layer gets fewer channels.
      divisible_by: depths are rounded to multiples of it.
      output_stride: see `strides_and_rates`.
      dropout_keep_prob: share of the features that training keeps before the logits.
      spatial_squeeze: drop height and width of the logits; they are 1.
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
            stride, rate = strides[index + 1]
            with net.scope(f"expanded_conv_{index}" if index else "expanded_conv"):
                x = inverted_residual(net, x, block, scaled(block.depth), stride, rate, f"layer_{index + 2}")
        keeps_depth = finegrain_classification_mode and depth_multiplier < 1
        x = net.conv(x, LAST_DEPTH if keeps_depth else scaled(LAST_DEPTH), 1, scope="Conv_1")
        net.end_point(f"layer_{len(BLOCKS) + 2}", x)
        pooled = net.end_point("global_pool", net.global_pool(x))
        return classified(net, pooled, num_classes, dropout_keep_prob, spatial_squeeze)


def inverted_residual(
    net: Layers, x: tf.Tensor, block: Block, depth: int, stride: int, rate: int, layer: str
) -> tf.Tensor:
    """One block: 1x1 up, 3x3 of every channel by itself, 1x1 down without an activation.

    Depth and stride are the block's own after `depth_multiplier` and `output_stride`; `layer` is what the names of
    its end points begin with.
    """
    shallow = x
    if block.expansion > 1:
        # By 8 whatever the other depths are divisible by: so it is in the published networks.
        x = net.conv(x, rounded(net.channels(x) * block.expansion, 8, 8), 1, scope="expand")
        net.end_point(f"{layer}/expansion_output", x)
    x = net.depthwise(x, 3, stride=stride, rate=rate, scope="depthwise")
    net.end_point(f"{layer}/depthwise_output", x)
    x = net.conv(x, depth, 1, scope="project", activation=None)
    # By the block's own stride: a bound on the strides must not make another network of it.
    if block.stride == 1 and net.channels(shallow) == depth:
        x = x + shallow
    net.end_point(f"{layer}/output", x)
    return net.end_point(layer, x)


def rounded(depth: float, divisible_by: int, least: int) -> int:
    """The multiple of `divisible_by` nearest to `depth`, at least `least`, and never 10% less than `depth`.

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
    )
    for name, multiplier in {"mobilenet_v2": 1.0, "mobilenet_v2_140": 1.4, "mobilenet_v2_035": 0.35}.items()
}
