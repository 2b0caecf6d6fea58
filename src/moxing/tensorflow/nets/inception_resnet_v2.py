"""Inception-ResNet v2, from the paper of Inception v4 (2016), as TF-Slim published it.

Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual connections on learning". The modules add
what their branches make of the input, scaled down, to the input itself. An auxiliary head stands behind the 17x17
modules.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.inception_common import (
    BATCH_NORM,
    Conv,
    Module,
    Pool,
    auxiliary_features,
    branches,
    build,
    classified_dense,
)
from moxing.tensorflow.nets.inception_v3 import STEM
from moxing.tensorflow.nets.parts.layers import Activation, Layers
from moxing.tensorflow.network_registry import Network

VALID = "VALID"

ENTRY: Module = [
    [Conv(96, scope="Conv2d_1x1")],
    [Conv(48), Conv(64, 5)],
    [Conv(64), Conv(96, 3), Conv(96, 3)],
    [Pool("avg"), Conv(64)],
]

BLOCK_35: Module = [
    [Conv(32, scope="Conv2d_1x1")],
    [Conv(32), Conv(32, 3)],
    [Conv(32), Conv(48, 3), Conv(64, 3)],
]

SHRINK_TO_17: Module = [
    [Conv(384, 3, 2, VALID)],
    [Conv(256), Conv(256, 3), Conv(384, 3, 2, VALID)],
    [Pool("max", 3, 2, VALID)],
]

BLOCK_17: Module = [
    [Conv(192, scope="Conv2d_1x1")],
    [Conv(128), Conv(160, (1, 7)), Conv(192, (7, 1))],
]

SHRINK_TO_8: Module = [
    [Conv(256), Conv(384, 3, 2, VALID)],
    [Conv(256), Conv(288, 3, 2, VALID)],
    [Conv(256), Conv(288, 3), Conv(320, 3, 2, VALID)],
    [Pool("max", 3, 2, VALID)],
]

BLOCK_8: Module = [
    [Conv(192, scope="Conv2d_1x1")],
    [Conv(192), Conv(224, (1, 3)), Conv(256, (3, 1))],
]


def inception_resnet_v2(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.8,
    create_aux_logits: bool = True,
    activation_fn: Callable[[tf.Tensor], tf.Tensor] = tf.nn.relu,
) -> tf.Tensor:
    """Inception-ResNet v2; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: None for features; there are no auxiliary logits then.
      dropout_keep_prob: the fraction of the features that is kept in training.
      create_aux_logits: build the auxiliary head; its logits are the end point `AuxLogits`.
      activation_fn: what every convolution and every block ends with.
    """
    if not callable(activation_fn):
        raise TypeError(f"activation_fn={activation_fn!r}: expected a function of a tensor, such as tf.nn.relu.")
    net = net.styled(batch_norm=BATCH_NORM, activation=activation_fn, initializer=tf.glorot_uniform_initializer())
    with net.scope("InceptionResnetV2"):
        x = build(net, images, {**STEM, "Mixed_5b": ENTRY})
        x = repeated(net, x, 10, "Repeat/block35", BLOCK_35, scale=0.17)
        x = build(net, x, {"Mixed_6a": SHRINK_TO_17})
        x = repeated(net, x, 20, "Repeat_1/block17", BLOCK_17, scale=0.10)
        net.end_point("PreAuxLogits", x)
        if create_aux_logits and num_classes is not None:
            with net.scope("AuxLogits"):
                auxiliary = auxiliary_features(net, x, (128, 768), "Conv2d_2a_5x5")
                net.end_point("AuxLogits", dense(net, net.squeeze(auxiliary), num_classes, "Logits"))
        x = build(net, x, {"Mixed_7a": SHRINK_TO_8})
        x = repeated(net, x, 9, "Repeat_2/block8", BLOCK_8, scale=0.20)
        x = block(net, x, "Block8", BLOCK_8, scale=1.0, activation=None)
        x = build(net, x, {"Conv2d_7b_1x1": Conv(1536)})
        return classified_dense(net, x, num_classes, dropout_keep_prob, dense)


def repeated(net: Layers, x: tf.Tensor, times: int, name: str, module: Module, scale: float) -> tf.Tensor:
    """Blocks `name`_1, `name`_2, ... one after the other."""
    for number in range(1, times + 1):
        x = block(net, x, f"{name}_{number}", module, scale, net.style.activation)
    return x


def block(net: Layers, x: tf.Tensor, name: str, module: Module, scale: float, activation: Activation) -> tf.Tensor:
    """Adds `scale` times what the branches of `module` make of `x` to `x`."""
    with net.scope(name):
        residual = branches(net, x, module)
        depth = net.channels(x)
        residual = net.styled(activation=None, batch_norm=None, biases=False).conv(
            residual, depth, 1, scope="Conv2d_1x1"
        )
        with tf.variable_scope("Conv2d_1x1"):
            residual = tf.nn.bias_add(residual, decaying_biases(net, depth, x), net.data_format)
        x = x + scale * residual
        return activation(x) if activation else x


def dense(net: Layers, x: tf.Tensor, num_classes: int, scope: str) -> tf.Tensor:
    """Logits of [batch, features]."""
    with net.scope(scope):
        weights = net.weights("weights", [int(x.shape.as_list()[1]), num_classes], x)
        return tf.matmul(x, weights) + decaying_biases(net, num_classes, x)


def decaying_biases(net: Layers, depth: int, like: tf.Tensor) -> tf.Tensor:
    """The biases of the current scope: in this network they decay as the weights do."""
    return net.weights("biases", [depth], like, tf.zeros_initializer())


NETWORKS: dict[str, Network] = {
    "inception_resnet_v2": Network(
        inception_resnet_v2,
        scope="InceptionResnetV2",
        image_size=299,
        logits_pattern="Logits/Logits/",
        preprocessing="inception",
        smallest=75,
    ),
}
