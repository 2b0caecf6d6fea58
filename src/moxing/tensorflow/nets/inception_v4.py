"""Inception v4, as TF-Slim published it.

Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual connections on learning" (2016). Deeper than
Inception v3 and more regular: four modules A at 35x35, seven B at 17x17, three C at 8x8 (for an image of 299x299), and
the stem has branches as well. An auxiliary head stands behind the last module B.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.inception_common import (
    BATCH_NORM,
    Conv,
    Fork,
    Module,
    Pool,
    auxiliary_features,
    build,
    classified_dense,
)
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network

VALID = "VALID"

MODULE_A: Module = [
    [Conv(96)],
    [Conv(64), Conv(96, 3)],
    [Conv(64), Conv(96, 3), Conv(96, 3)],
    [Pool("avg"), Conv(96)],
]

SHRINK_A: Module = [
    [Conv(384, 3, 2, VALID)],
    [Conv(192), Conv(224, 3), Conv(256, 3, 2, VALID)],
    [Pool("max", 3, 2, VALID)],
]

MODULE_B: Module = [
    [Conv(384)],
    [Conv(192), Conv(224, (1, 7)), Conv(256, (7, 1))],
    [Conv(192), Conv(192, (7, 1)), Conv(224, (1, 7)), Conv(224, (7, 1)), Conv(256, (1, 7))],
    [Pool("avg"), Conv(128)],
]

SHRINK_B: Module = [
    [Conv(192), Conv(192, 3, 2, VALID)],
    [Conv(256), Conv(256, (1, 7)), Conv(320, (7, 1)), Conv(320, 3, 2, VALID)],
    [Pool("max", 3, 2, VALID)],
]

MODULE_C: Module = [
    [Conv(256)],
    [Conv(384), Fork(Conv(256, (1, 3)), Conv(256, (3, 1)))],
    [Conv(384), Conv(448, (3, 1)), Conv(512, (1, 3)), Fork(Conv(256, (1, 3)), Conv(256, (3, 1)))],
    [Pool("avg"), Conv(256)],
]

TABLE: dict[str, Conv | Pool | Module] = {
    "Conv2d_1a_3x3": Conv(32, 3, 2, VALID),
    "Conv2d_2a_3x3": Conv(32, 3, 1, VALID),
    "Conv2d_2b_3x3": Conv(64, 3),
    "Mixed_3a": [[Pool("max", 3, 2, VALID)], [Conv(96, 3, 2, VALID, scope="Conv2d_0a_3x3")]],
    "Mixed_4a": [
        [Conv(64), Conv(96, 3, 1, VALID)],
        [Conv(64), Conv(64, (1, 7)), Conv(64, (7, 1)), Conv(96, 3, 1, VALID)],
    ],
    "Mixed_5a": [[Conv(192, 3, 2, VALID)], [Pool("max", 3, 2, VALID)]],
    **{f"Mixed_5{letter}": MODULE_A for letter in "bcde"},
    "Mixed_6a": SHRINK_A,
    **{f"Mixed_6{letter}": MODULE_B for letter in "bcdefgh"},
    "Mixed_7a": SHRINK_B,
    **{f"Mixed_7{letter}": MODULE_C for letter in "bcd"},
}


def inception_v4(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.8,
    create_aux_logits: bool = True,
) -> tf.Tensor:
    """Inception v4; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: None for features; there are no auxiliary logits then.
      dropout_keep_prob: the fraction of the features that is kept in training.
      create_aux_logits: build the auxiliary head; its logits are the end point `AuxLogits`.
    """
    net = net.styled(batch_norm=BATCH_NORM)
    with net.scope("InceptionV4"):
        x = build(net, images, TABLE)
        if create_aux_logits and num_classes is not None:
            with net.scope("AuxLogits"):
                auxiliary = auxiliary_features(net, net.end_points["Mixed_6h"], (128, 768), "Conv2d_2a")
                net.end_point("AuxLogits", dense(net, net.squeeze(auxiliary), num_classes, "Aux_logits"))
        return classified_dense(net, x, num_classes, dropout_keep_prob, dense)


def dense(net: Layers, x: tf.Tensor, num_classes: int, scope: str) -> tf.Tensor:
    """Logits of features. Uses TF-Slim's default initializer where its Inception style sets none."""
    return net.styled(activation=None, initializer=tf.glorot_uniform_initializer()).dense(x, num_classes, scope=scope)


NETWORKS: dict[str, Network] = {
    "inception_v4": Network(
        inception_v4,
        scope="InceptionV4",
        image_size=299,
        logits_pattern="/Logits/|/Aux_logits/",
        preprocessing="inception",
        smallest=75,
    ),
}
