"""VGG: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition" (2014).

Five groups of 3x3 convolutions with pooling behind each, then three layers that the paper calls fully connected. As in
TF-Slim those are convolutions, the first one as large as what an image of the published size becomes, so that a larger
image gets a map of logits, which is averaged before the last layer.

The networks with `_bn` normalise batches after every 3x3 convolution and keep the biases in front of it, though the
normalisation takes them out again: so they have the parameters that torchvision states for its networks of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network

BATCH_NORM = BatchNorm(decay=0.997, epsilon=1e-5)

DEPTHS = (64, 128, 256, 512, 512)


def vgg(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    name: str,
    convolutions: Sequence[int],
    batch_norm: BatchNorm | None,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    global_pool: bool | None = None,
    fc_conv_padding: str = "VALID",
) -> tf.Tensor:
    """A VGG; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      name: scope of the variables.
      convolutions: number of convolutions of every group.
      batch_norm: the constants of the normalisation after every 3x3 convolution; None is none.
      dropout_keep_prob: see `classified`.
      spatial_squeeze: see `classified`.
      global_pool: see `classified`.
      fc_conv_padding: padding of fc6; `SAME` gives a map of logits, one for every 32 x 32 pixels.
    """
    if fc_conv_padding not in ("VALID", "SAME"):
        raise ValueError(f"fc_conv_padding={fc_conv_padding!r}: expected 'VALID' or 'SAME'.")
    net = net.styled(initializer=tf.glorot_uniform_initializer(), collect=True)
    with net.scope(name):
        x = images
        for group, (count, depth) in enumerate(zip(convolutions, DEPTHS, strict=True), start=1):
            with net.scope(f"conv{group}"):
                for index in range(1, count + 1):
                    x = net.styled(biases=True, batch_norm=batch_norm).conv(x, depth, 3, scope=f"conv{group}_{index}")
            x = net.max_pool(x, 2, scope=f"pool{group}")
        return classified(
            net, x, num_classes, fc6=(4096, 7), padding=fc_conv_padding, dropout_keep_prob=dropout_keep_prob,
            spatial_squeeze=spatial_squeeze, global_pool=global_pool,
        )  # fmt: skip


def classified(
    net: Layers,
    x: tf.Tensor,
    num_classes: int | None,
    *,
    fc6: tuple[int, int],
    fc7: int = 4096,
    dropout_keep_prob: float,
    spatial_squeeze: bool,
    global_pool: bool | None,
    padding: str = "VALID",
    biases_initializer: Any = None,
) -> tf.Tensor:
    """Three layers that are fully connected on an image of the published size: fc6, fc7, fc8.

    Args:
      net: the layers.
      x: what the convolutions made of the images.
      num_classes: None ends before fc8 and its dropout.
      fc6: depth of fc6, and height and width of its kernel.
      fc7: depth of fc7.
      dropout_keep_prob: share of the features that training keeps before fc7 and before fc8.
      spatial_squeeze: drop height and width of the logits; False keeps them, for dense prediction.
      global_pool: average over height and width before fc8; None: where `spatial_squeeze` needs it, which is wherever
        they are not known to be 1.
      padding: of fc6.
      biases_initializer: of fc6 and fc7; None is zeros.
    """
    depth, kernel = fc6
    dense = net.styled(biases=True, biases_initializer=biases_initializer or net.style.biases_initializer)
    x = dense.styled(padding=padding).conv(x, depth, kernel, scope="fc6")
    x = net.dropout(x, dropout_keep_prob)
    x = dense.conv(x, fc7, 1, scope="fc7")
    is_single = net.size(x) == (1, 1)
    if global_pool or (global_pool is None and spatial_squeeze and not is_single):
        x, is_single = net.end_point("global_pool", net.global_pool(x)), True
    if num_classes is None:
        return x
    x = net.dropout(x, dropout_keep_prob)
    x = net.styled(activation=None, batch_norm=None).conv(x, num_classes, 1, scope="fc8")
    if not spatial_squeeze:
        return x
    if not is_single:
        height, width = ("?" if length is None else length for length in net.size(x))
        raise ValueError(
            f"global_pool=False gives a map of {height} x {width} logits, and spatial_squeeze=True needs 1 x 1: pass "
            "spatial_squeeze=False for the map, or leave global_pool out for its average."
        )
    return net.collected(net.squeeze(x), "fc8")


def _network(name: str, convolutions: Sequence[int], batch_norm: BatchNorm | None) -> Network:
    return Network(
        partial(vgg, name=name, convolutions=convolutions, batch_norm=batch_norm),
        scope=name,
        image_size=224,
        logits_pattern="fc8",
        labels_offset=1,
        smallest=224,
    )


NETWORKS: dict[str, Network] = {
    name + suffix: _network(name + suffix, convolutions, batch_norm)
    for name, convolutions in {
        "vgg_a": (1, 1, 2, 2, 2),
        "vgg_16": (2, 2, 3, 3, 3),
        "vgg_19": (2, 2, 4, 4, 4),
    }.items()
    for suffix, batch_norm in {"": None, "_bn": BATCH_NORM}.items()
}
