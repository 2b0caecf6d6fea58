"""Inception v2: Ioffe and Szegedy, "Batch normalization" (2015), as TF-Slim published it.

The paper's two 3x3 convolutions stand in the place of one 5x5, the images shrink inside of modules (`Mixed_4a`,
`Mixed_5a`), and the first convolution is a separable one.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.inception_common import (
    BATCH_NORM,
    Conv,
    Depth,
    Module,
    Pool,
    build,
    classified,
    scaled_depth,
)
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network


def narrow(depth: int) -> Conv:
    """The 1x1 convolution before larger ones."""
    return Conv(depth, initializer=tf.truncated_normal_initializer(stddev=0.09))


def pooled_conv(depth: int) -> Conv:
    """The 1x1 convolution behind pooling."""
    return Conv(depth, initializer=tf.truncated_normal_initializer(stddev=0.1))


def module(single: int, double: tuple[int, int], triple: tuple[int, int], pooled: int, pool: str = "avg") -> Module:
    """Four branches: 1x1; 1x1 and 3x3; 1x1 and twice 3x3; pooling and 1x1."""
    return [
        [Conv(single)],
        [narrow(double[0]), Conv(double[1], 3)],
        [narrow(triple[0]), Conv(triple[1], 3), Conv(triple[1], 3)],
        [Pool(pool), pooled_conv(pooled)],
    ]


def shrinking(double: tuple[int, int], triple: tuple[int, int]) -> Module:
    """Three branches that halve the image: 1x1 and 3x3; 1x1 and twice 3x3; pooling."""
    return [
        [narrow(double[0]), Conv(double[1], 3, stride=2)],
        [narrow(triple[0]), Conv(triple[1], 3), Conv(triple[1], 3, stride=2)],
        [Pool("max", stride=2)],
    ]


#: What comes behind the first convolution.
TABLE: dict[str, Conv | Pool | Module] = {
    "MaxPool_2a_3x3": Pool("max", 3, stride=2),
    "Conv2d_2b_1x1": Conv(64, initializer=tf.truncated_normal_initializer(stddev=0.1)),
    "Conv2d_2c_3x3": Conv(192, 3),
    "MaxPool_3a_3x3": Pool("max", 3, stride=2),
    "Mixed_3b": module(64, (64, 64), (64, 96), 32),
    "Mixed_3c": module(64, (64, 96), (64, 96), 64),
    "Mixed_4a": shrinking((128, 160), (64, 96)),
    "Mixed_4b": module(224, (64, 96), (96, 128), 128),
    "Mixed_4c": module(192, (96, 128), (96, 128), 128),
    "Mixed_4d": module(160, (128, 160), (128, 160), 96),
    "Mixed_4e": module(96, (128, 192), (160, 192), 96),
    "Mixed_5a": shrinking((128, 192), (192, 256)),
    "Mixed_5b": module(352, (192, 320), (160, 224), 128),
    "Mixed_5c": module(352, (192, 320), (192, 224), 128, pool="max"),
}


def inception_v2(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    spatial_squeeze: bool = True,
    global_pool: bool = False,
) -> tf.Tensor:
    """Inception v2; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      dropout_keep_prob: the fraction of the features that is kept in training.
      min_depth: see `scaled_depth`.
      depth_multiplier: see `scaled_depth`.
      spatial_squeeze: drop height and width of the logits.
      global_pool: see `classified`.
    """
    depth = scaled_depth(depth_multiplier, min_depth)
    net = net.styled(batch_norm=BATCH_NORM)
    with net.scope("InceptionV2"):
        x = first_convolution(net, images, depth)
        x = build(net, x, TABLE, depth)
        return classified(
            net, x, num_classes, scope="Conv2d_1c_1x1", pooling="AvgPool_1a", pooled_length=7,
            before_logits="PreLogits", dropout_keep_prob=dropout_keep_prob,
            spatial_squeeze=spatial_squeeze, global_pool=global_pool,
        )  # fmt: skip


def first_convolution(net: Layers, images: tf.Tensor, depth: Depth) -> tf.Tensor:
    """A separable 7x7 convolution that makes up to eight channels of every one, with biases and no decay."""
    name, channels, output = "Conv2d_1a_7x7", net.channels(images), depth(64)
    # By the published network's three channels, not by those of these images: the multiplier is a constant of it.
    multiplier = min(output // 3, 8)
    initializer = tf.truncated_normal_initializer(stddev=1.0)
    with net.scope(name):
        depthwise = net.weights("depthwise_weights", [7, 7, channels, multiplier], images, initializer, decay=False)
        pointwise_shape = [1, 1, channels * multiplier, output]
        pointwise = net.weights("pointwise_weights", pointwise_shape, images, initializer, decay=False)
        biases = net.weights("biases", [output], images, tf.zeros_initializer(), decay=False)
        x = tf.nn.depthwise_conv2d(images, depthwise, net.per_axis(2, 2), "SAME", data_format=net.data_format)
        x = tf.nn.conv2d(x, pointwise, 1, "VALID", data_format=net.data_format)
        return net.end_point(name, tf.nn.relu(tf.nn.bias_add(x, biases, net.data_format)))


NETWORKS: dict[str, Network] = {
    "inception_v2": Network(
        inception_v2, scope="InceptionV2", image_size=224, logits_pattern="/Logits/", preprocessing="inception"
    ),
}
