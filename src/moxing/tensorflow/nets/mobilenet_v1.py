"""MobileNet (2017).

Howard et al., "MobileNets: efficient convolutional neural networks for mobile vision applications".

A convolution of every channel by itself (3x3, "depthwise") and one across the channels (1x1, "pointwise") take the
place of a full convolution. All depths are multiplied by one number, which trades accuracy for speed.
"""

from __future__ import annotations

from functools import partial

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.parts.strides import strides_and_rates
from moxing.tensorflow.network_registry import Network

BATCH_NORM = BatchNorm(decay=0.9997, epsilon=1e-3)

#: What TF-Slim begins every layer of the MobileNets with.
INITIALIZER = tf.truncated_normal_initializer(stddev=0.09)

#: Depth and stride of the first, full convolution.
FIRST = (32, 2)

#: Depth and stride of the pairs of a depthwise and a pointwise convolution.
PAIRS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)

#: Side of the last feature map for images of the published size.
WINDOW = 7


def mobilenet_v1(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    depth_multiplier: float = 1.0,
    min_depth: int = 8,
    output_stride: int | None = None,
    dropout_keep_prob: float = 0.999,
    global_pool: bool = True,
    spatial_squeeze: bool = True,
) -> tf.Tensor:
    """MobileNet; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      depth_multiplier: factor of all depths.
      min_depth: no layer gets fewer channels.
      output_stride: see `strides_and_rates`.
      dropout_keep_prob: probability of keeping a feature before the logits, in training.
      global_pool: False takes the mean of 7 x 7 windows, two steps apart, so that larger images give maps of logits.
      spatial_squeeze: drop height and width of the logits where they are 1.
    """
    check_depths(depth_multiplier, min_depth)
    net = net.styled(batch_norm=BATCH_NORM, initializer=INITIALIZER, activation=tf.nn.relu6)
    table = (FIRST, *PAIRS)
    depths = [max(int(depth * depth_multiplier), min_depth) for depth, _ in table]
    strides = strides_and_rates([stride for _, stride in table], output_stride)
    with net.scope("MobilenetV1"):
        x = net.conv(images, depths[0], 3, stride=strides[0][0], scope="Conv2d_0")
        net.end_point("Conv2d_0", x)
        for number in range(1, len(table)):
            stride, rate = strides[number]
            depthwise, pointwise = f"Conv2d_{number}_depthwise", f"Conv2d_{number}_pointwise"
            x = net.end_point(depthwise, net.depthwise(x, 3, stride=stride, rate=rate, scope=depthwise))
            x = net.end_point(pointwise, net.conv(x, depths[number], 1, scope=pointwise))
        if global_pool:
            pooled = net.global_pool(x)
        else:
            height, width = (WINDOW if side is None else min(WINDOW, side) for side in net.size(x))
            pooled = net.avg_pool(x, (height, width), stride=2)
        net.end_point("AvgPool_1a", pooled)
        return classified(net, pooled, num_classes, dropout_keep_prob, spatial_squeeze)


def check_depths(depth_multiplier: float, min_depth: int) -> None:
    """Raises a ValueError for depths that no MobileNet can have."""
    if not depth_multiplier > 0:
        raise ValueError(f"depth_multiplier={depth_multiplier!r}: expected a number greater than 0.")
    if min_depth < 1:
        raise ValueError(f"min_depth={min_depth!r}: expected at least 1.")


def classified(
    net: Layers, pooled: tf.Tensor, num_classes: int | None, dropout_keep_prob: float, spatial_squeeze: bool
) -> tf.Tensor:
    """The end of a MobileNet: dropout, logits, predictions."""
    if num_classes is None:
        return pooled
    with net.scope("Logits"):
        x = net.dropout(pooled, dropout_keep_prob)
        x = net.styled(activation=None, batch_norm=None).conv(x, num_classes, 1, scope="Conv2d_1c_1x1")
        if spatial_squeeze and net.size(x) == (1, 1):
            x = net.squeeze(x)
    net.end_point("Logits", x)
    net.end_point("Predictions", net.softmax(x))
    return x


NETWORKS: dict[str, Network] = {
    name: Network(
        partial(mobilenet_v1, depth_multiplier=multiplier),
        scope="MobilenetV1",
        image_size=224,
        logits_pattern="Logits",
        preprocessing="inception",
    )
    for name, multiplier in {
        "mobilenet_v1": 1.0,
        "mobilenet_v1_075": 0.75,
        "mobilenet_v1_050": 0.5,
        "mobilenet_v1_025": 0.25,
    }.items()
}
