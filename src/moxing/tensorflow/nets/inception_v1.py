"""Inception v1: Szegedy et al., "Going deeper with convolutions" (2014), as TF-Slim published it.

Other than in the paper batches are normalised, the branch of 5x5 convolutions has 3x3 ones, and there are no auxiliary
heads.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.inception_common import (
    BATCH_NORM,
    Conv,
    Module,
    Pool,
    build,
    classified,
)
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network


def module(
    single: int, double: tuple[int, int], other: tuple[int, int], pooled: int, other_scope: str | None = None
) -> Module:
    """Four branches: 1x1; 1x1 and 3x3; the same with fewer channels; pooling and 1x1."""
    return [
        [Conv(single)],
        [Conv(double[0]), Conv(double[1], 3)],
        [Conv(other[0]), Conv(other[1], 3, scope=other_scope)],
        [Pool("max"), Conv(pooled)],
    ]


TABLE: dict[str, Conv | Pool | Module] = {
    "Conv2d_1a_7x7": Conv(64, 7, stride=2),
    "MaxPool_2a_3x3": Pool("max", 3, stride=2),
    "Conv2d_2b_1x1": Conv(64),
    "Conv2d_2c_3x3": Conv(192, 3),
    "MaxPool_3a_3x3": Pool("max", 3, stride=2),
    "Mixed_3b": module(64, (96, 128), (16, 32), 32),
    "Mixed_3c": module(128, (128, 192), (32, 96), 64),
    "MaxPool_4a_3x3": Pool("max", 3, stride=2),
    "Mixed_4b": module(192, (96, 208), (16, 48), 64),
    "Mixed_4c": module(160, (112, 224), (24, 64), 64),
    "Mixed_4d": module(128, (128, 256), (24, 64), 64),
    "Mixed_4e": module(112, (144, 288), (32, 64), 64),
    "Mixed_4f": module(256, (160, 320), (32, 128), 128),
    "MaxPool_5a_2x2": Pool("max", 2, stride=2),
    "Mixed_5b": module(256, (160, 320), (32, 128), 128, other_scope="Conv2d_0a_3x3"),
    "Mixed_5c": module(384, (192, 384), (48, 128), 128),
}


def inception_v1(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.8,
    spatial_squeeze: bool = True,
    global_pool: bool = False,
) -> tf.Tensor:
    """Inception v1; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      dropout_keep_prob: the fraction of the features that is kept in training.
      spatial_squeeze: drop height and width of the logits.
      global_pool: see `classified`.
    """
    net = net.styled(batch_norm=BATCH_NORM)
    with net.scope("InceptionV1"):
        x = build(net.styled(initializer=tf.truncated_normal_initializer(stddev=0.01)), images, TABLE)
        return classified(
            net, x, num_classes, scope="Conv2d_0c_1x1", pooling="AvgPool_0a_7x7", pooled_length=7,
            dropout_keep_prob=dropout_keep_prob, spatial_squeeze=spatial_squeeze, global_pool=global_pool,
        )  # fmt: skip


NETWORKS: dict[str, Network] = {
    "inception_v1": Network(
        inception_v1, scope="InceptionV1", image_size=224, logits_pattern="/Logits/", preprocessing="inception"
    ),
}
