"""Inception v3: Szegedy et al., "Rethinking the Inception architecture for computer vision" (2015), as in TF-Slim.

There are three kinds of modules, for features of 35x35, 17x17 and 8x8 of an image of 299x299; the second one has pairs
of 1x7 and 7x1 convolutions in the place of 7x7, the third one 1x3 and 3x1 side by side. An auxiliary head looks at the
17x17 features.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.inception_common import (
    BATCH_NORM,
    Conv,
    Depth,
    Fork,
    Module,
    Pool,
    auxiliary_features,
    build,
    classified,
    scaled_depth,
)
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network

VALID = "VALID"


def module_35(pooled: int, scopes: tuple[str | None, str | None] = (None, None)) -> Module:
    """1x1; 1x1 and 5x5; 1x1 and twice 3x3; pooling and 1x1. `scopes` are those of the second branch."""
    return [
        [Conv(64)],
        [Conv(48, scope=scopes[0]), Conv(64, 5, scope=scopes[1])],
        [Conv(64), Conv(96, 3), Conv(96, 3)],
        [Pool("avg"), Conv(pooled)],
    ]


def module_17(inner: int) -> Module:
    """1x1; 1x1 and one pair of 1x7 and 7x1; 1x1 and two pairs; pooling and 1x1. `inner`: depth inside of a branch."""
    return [
        [Conv(192)],
        [Conv(inner), Conv(inner, (1, 7)), Conv(192, (7, 1))],
        [Conv(inner), Conv(inner, (7, 1)), Conv(inner, (1, 7)), Conv(inner, (7, 1)), Conv(192, (1, 7))],
        [Pool("avg"), Conv(192)],
    ]


def module_8(scope_3x1: str | None = None) -> Module:
    """1x1; 1x1 and a fork; 1x1, 3x3 and a fork; pooling and 1x1. `scope_3x1` is that of the first fork's 3x1."""
    return [
        [Conv(320)],
        [Conv(384), Fork(Conv(384, (1, 3)), Conv(384, (3, 1), scope=scope_3x1))],
        [Conv(448), Conv(384, 3), Fork(Conv(384, (1, 3)), Conv(384, (3, 1)))],
        [Pool("avg"), Conv(192)],
    ]


#: These 3x3 convolutions are called 1x1 in the published weights.
SHRINK_TO_17: Module = [
    [Conv(384, 3, 2, VALID, scope="Conv2d_1a_1x1")],
    [Conv(64), Conv(96, 3), Conv(96, 3, 2, VALID, scope="Conv2d_1a_1x1")],
    [Pool("max", 3, 2, VALID)],
]

SHRINK_TO_8: Module = [
    [Conv(192), Conv(320, 3, 2, VALID)],
    [Conv(192), Conv(192, (1, 7)), Conv(192, (7, 1)), Conv(192, 3, 2, VALID)],
    [Pool("max", 3, 2, VALID)],
]

#: To 35x35; Inception-ResNet begins with it as well.
STEM: dict[str, Conv | Pool | Module] = {
    "Conv2d_1a_3x3": Conv(32, 3, 2, VALID),
    "Conv2d_2a_3x3": Conv(32, 3, 1, VALID),
    "Conv2d_2b_3x3": Conv(64, 3),
    "MaxPool_3a_3x3": Pool("max", 3, 2, VALID),
    "Conv2d_3b_1x1": Conv(80),
    "Conv2d_4a_3x3": Conv(192, 3, 1, VALID),
    "MaxPool_5a_3x3": Pool("max", 3, 2, VALID),
}

TABLE: dict[str, Conv | Pool | Module] = {
    **STEM,
    "Mixed_5b": module_35(32),
    "Mixed_5c": module_35(64, scopes=("Conv2d_0b_1x1", "Conv_1_0c_5x5")),
    "Mixed_5d": module_35(64),
    "Mixed_6a": SHRINK_TO_17,
    "Mixed_6b": module_17(128),
    "Mixed_6c": module_17(160),
    "Mixed_6d": module_17(160),
    "Mixed_6e": module_17(192),
    "Mixed_7a": SHRINK_TO_8,
    "Mixed_7b": module_8(scope_3x1="Conv2d_0b_3x1"),
    "Mixed_7c": module_8(),
}


def inception_v3(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    spatial_squeeze: bool = True,
    create_aux_logits: bool = True,
    global_pool: bool = False,
) -> tf.Tensor:
    """Inception v3; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: None for features; there are no auxiliary logits then.
      dropout_keep_prob: the fraction of the features that is kept in training.
      min_depth: see `scaled_depth`.
      depth_multiplier: see `scaled_depth`.
      spatial_squeeze: drop height and width of the logits and of the auxiliary logits.
      create_aux_logits: build the auxiliary head; its logits are the end point `AuxLogits`.
      global_pool: see `classified`.
    """
    depth = scaled_depth(depth_multiplier, min_depth)
    net = net.styled(batch_norm=BATCH_NORM)
    with net.scope("InceptionV3"):
        x = build(net, images, TABLE, depth)
        if create_aux_logits and num_classes is not None:
            auxiliary_logits(net, net.end_points["Mixed_6e"], num_classes, depth, spatial_squeeze)
        return classified(
            net, x, num_classes, scope="Conv2d_1c_1x1", pooling="AvgPool_1a", pooled_length=8,
            before_logits="PreLogits", dropout_keep_prob=dropout_keep_prob,
            spatial_squeeze=spatial_squeeze, global_pool=global_pool,
        )  # fmt: skip


def auxiliary_logits(net: Layers, x: tf.Tensor, num_classes: int, depth: Depth, spatial_squeeze: bool) -> tf.Tensor:
    """The auxiliary head: [batch, classes], or [batch, 1, 1, classes] without `spatial_squeeze`."""
    with net.scope("AuxLogits"):
        initializer = tf.truncated_normal_initializer(stddev=0.01)
        x = auxiliary_features(net, x, (depth(128), depth(768)), "Conv2d_2a_{}x{}", initializer)
        small = tf.truncated_normal_initializer(stddev=0.001)
        logits = net.styled(activation=None, batch_norm=None, initializer=small)
        x = logits.conv(x, num_classes, 1, scope="Conv2d_2b_1x1")
        return net.end_point("AuxLogits", net.squeeze(x) if spatial_squeeze else x)


NETWORKS: dict[str, Network] = {
    "inception_v3": Network(
        inception_v3,
        scope="InceptionV3",
        image_size=299,
        logits_pattern="/Logits/|AuxLogits/Conv2d_2b",
        preprocessing="inception",
        smallest=75,
    ),
}
