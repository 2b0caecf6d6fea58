"""PVANet: Hong et al., "PVANet: lightweight deep neural networks for real-time object detection" (2016).

The classifier that the authors trained on ImageNet before they built a detector on it: their release 9.1, whose layers
their file `pva9.1_preAct_test.prototxt` lists. The early blocks save half of a convolution by C.ReLU, the later ones
have branches that see 1x1, 3x3 and 5x5 pixels (5x5 as two times 3x3); all add their input to their output. For images
that are not 192 x 192 see `vgg`.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.vgg import classified
from moxing.tensorflow.network_registry import Network

BATCH_NORM = BatchNorm(decay=0.999, epsilon=1e-5)


class CReluBlock(NamedTuple):
    """Depths of the convolutions 1x1, 3x3 (doubled by C.ReLU) and 1x1.

    Attributes:
      depths: the three depths.
      stride: of the first one.
      activated: the input comes out of a ReLU already.
    """

    depths: tuple[int, int, int]
    stride: int = 1
    activated: bool = False


class InceptionBlock(NamedTuple):
    """Depths of the convolutions of every branch, and of the 1x1 convolution behind them.

    Attributes:
      branches: a branch begins with a 1x1 convolution, the others are 3x3.
      depth: of the output.
      pooled: depth of the branch that begins with pooling; the block has stride 2 where there is one.
      last: batches are normalised once more before the output is added.
    """

    branches: tuple[tuple[int, ...], ...]
    depth: int
    pooled: int | None = None
    last: bool = False


BLOCKS: dict[str, CReluBlock | InceptionBlock] = {
    "conv2_1": CReluBlock((24, 24, 64), activated=True),
    "conv2_2": CReluBlock((24, 24, 64)),
    "conv2_3": CReluBlock((24, 24, 64)),
    "conv3_1": CReluBlock((48, 48, 128), stride=2),
    "conv3_2": CReluBlock((48, 48, 128)),
    "conv3_3": CReluBlock((48, 48, 128)),
    "conv3_4": CReluBlock((48, 48, 128)),
    "conv4_1": InceptionBlock(((64,), (48, 128), (24, 48, 48)), 256, pooled=128),
    "conv4_2": InceptionBlock(((64,), (64, 128), (24, 48, 48)), 256),
    "conv4_3": InceptionBlock(((64,), (64, 128), (24, 48, 48)), 256),
    "conv4_4": InceptionBlock(((64,), (64, 128), (24, 48, 48)), 256),
    "conv5_1": InceptionBlock(((64,), (96, 192), (32, 64, 64)), 384, pooled=128),
    "conv5_2": InceptionBlock(((64,), (96, 192), (32, 64, 64)), 384),
    "conv5_3": InceptionBlock(((64,), (96, 192), (32, 64, 64)), 384),
    "conv5_4": InceptionBlock(((64,), (96, 192), (32, 64, 64)), 384, last=True),
}


def pvanet(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    global_pool: bool | None = None,
) -> tf.Tensor:
    """PVANet; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      dropout_keep_prob: see `classified`.
      spatial_squeeze: see `classified`.
      global_pool: see `classified`.
    """
    # What Caffe calls "xavier".
    initializer = tf.variance_scaling_initializer(1.0, "fan_in", "uniform")
    net = net.styled(batch_norm=BATCH_NORM, initializer=initializer, collect=True)
    with net.scope("pvanet"):
        with net.scope("conv1_1"):
            x = net.styled(padding="FIXED", activation=None, batch_norm=None, biases=False).conv(
                images, 16, 7, stride=2, scope="conv"
            )
            x = net.collected(c_relu(net, x))
        x = net.max_pool(x, 3, padding="SAME", scope="pool1")
        for name, block in BLOCKS.items():
            with net.scope(name):
                if isinstance(block, CReluBlock):
                    x = net.collected(c_relu_block(net, x, block))
                else:
                    x = net.collected(inception_block(net, x, block))
        x = net.collected(net.batch_norm(x, scope="last_bn", activation=tf.nn.relu), "last_bn")
        return classified(
            net, x, num_classes, fc6=(4096, 6), dropout_keep_prob=dropout_keep_prob, spatial_squeeze=spatial_squeeze,
            global_pool=global_pool, biases_initializer=tf.constant_initializer(0.1),
        )  # fmt: skip


def c_relu(net: Layers, x: tf.Tensor) -> tf.Tensor:
    """Concatenated ReLU: every channel and its negative, normalised, each scaled and shifted by itself.

    The authors normalise before they negate. That is the same, since the negative has the negative mean and the same
    variance; the moving averages of the second half are stored though they follow from those of the first.
    """
    return net.batch_norm(net.concat([x, -x]), activation=tf.nn.relu)


def c_relu_block(net: Layers, x: tf.Tensor, block: CReluBlock) -> tf.Tensor:
    """1x1, 3x3 and 1x1, with normalisation and activation in front of each, and the input added."""
    first, second, third = block.depths
    shortcut = shortcut_of(net, x, third, block.stride)
    with net.scope("1"):
        y = x if block.activated else net.batch_norm(x, activation=tf.nn.relu)
        y = convolved(net, y, first, 1, stride=block.stride, scope="conv")
    with net.scope("2"):
        y = convolved(net, net.batch_norm(y, activation=tf.nn.relu), second, 3, scope="conv")
    with net.scope("3"):
        y = convolved(net, c_relu(net, y), third, 1, scope="conv")
    return y + shortcut


def inception_block(net: Layers, x: tf.Tensor, block: InceptionBlock) -> tf.Tensor:
    """Branches side by side, a 1x1 convolution over all of them, and the input added."""
    stride = 1 if block.pooled is None else 2
    shortcut = shortcut_of(net, x, block.depth, stride)
    with net.scope("incep"):
        y = net.batch_norm(x, activation=tf.nn.relu)
        outputs = [branch_of(net, y, index, depths, stride) for index, depths in enumerate(block.branches)]
        if block.pooled is not None:
            outputs.append(net.conv(net.max_pool(y, 3, padding="SAME"), block.pooled, 1, scope="poolproj"))
        y = net.concat(outputs)
    if block.last:
        return net.styled(activation=None).conv(y, block.depth, 1, scope="out") + shortcut
    return convolved(net, y, block.depth, 1, scope="out") + shortcut


def branch_of(net: Layers, x: tf.Tensor, index: int, depths: tuple[int, ...], stride: int) -> tf.Tensor:
    """A 1x1 convolution with the stride, and as many 3x3 ones behind it as there are depths left."""
    reduced, *others = depths
    x = net.conv(x, reduced, 1, stride=stride, scope=f"{index}_reduce" if others else str(index))
    for number, depth in enumerate(others):
        x = net.conv(x, depth, 3, scope=f"{index}_{number}")
    return x


def shortcut_of(net: Layers, x: tf.Tensor, depth: int, stride: int) -> tf.Tensor:
    """The block's input in the size and depth of its output."""
    if net.channels(x) == depth and stride == 1:
        return x
    return convolved(net, x, depth, 1, stride=stride, scope="proj")


def convolved(net: Layers, x: tf.Tensor, depth: int, kernel: int, stride: int = 1, *, scope: str) -> tf.Tensor:
    """A convolution with biases and nothing behind it: the next block normalises and activates."""
    biases = tf.constant_initializer(0.1)
    return net.styled(activation=None, batch_norm=None, biases_initializer=biases).conv(
        x, depth, kernel, stride=stride, scope=scope
    )


NETWORKS: dict[str, Network] = {
    "pvanet": Network(
        pvanet,
        scope="pvanet",
        image_size=192,
        logits_pattern="fc8",
        preprocessing="pvanet",
        labels_offset=1,
        smallest=161,
    ),
}
