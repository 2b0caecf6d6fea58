"""Shared by the Inception networks: a notation for their modules, and their last layers.

An Inception module sends its input through several branches and joins their channels. A network is a table from names
to `Conv`, `Pool` and modules (lists of branches), and `build` makes it. The names of the convolutions in a branch
follow from their places: `Conv2d_0a_1x1` is the first one, `Conv2d_0b_3x3` the second one, and `Conv2d_1a_3x3` one that
makes the image smaller. The published names have a few exceptions, for these `Conv` takes a `scope`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers

BATCH_NORM = BatchNorm(decay=0.9997, epsilon=0.001, scale=False)

#: From the depth in the table to the depth that is built.
Depth: TypeAlias = Callable[[int], int]


class Conv(NamedTuple):
    """A convolution; without a `scope` it is named by its position in the branch."""

    depth: int
    kernel: int | tuple[int, int] = 1
    stride: int = 1
    padding: str = "SAME"
    scope: str | None = None
    initializer: Any = None


class Pool(NamedTuple):
    """A pooling, `max` or `avg`."""

    kind: str
    kernel: int = 3
    stride: int = 1
    padding: str = "SAME"


class Fork(NamedTuple):
    """Convolutions of the same input whose channels are concatenated, at the end of a branch."""

    first: Conv
    second: Conv


Branch: TypeAlias = Sequence[Conv | Pool | Fork]
Module: TypeAlias = Sequence[Branch]


def same_depth(depth: int) -> int:
    """Returns the depth of the table unchanged."""
    return depth


def scaled_depth(depth_multiplier: float, min_depth: int) -> Depth:
    """Multiplies the depths of the table by `depth_multiplier`, but not below `min_depth`.

    Example:
      >>> depth = scaled_depth(0.25, min_depth=16)
      >>> depth(128), depth(32)
      (32, 16)
    """
    if not depth_multiplier > 0:
        raise ValueError(
            f"depth_multiplier={depth_multiplier!r}: expected a number above 0; 1.0 is the published network."
        )
    if min_depth < 1:
        raise ValueError(f"min_depth={min_depth!r}: expected a number of channels, at least 1.")
    return lambda depth: max(int(depth * depth_multiplier), min_depth)


def build(net: Layers, x: tf.Tensor, table: Mapping[str, Conv | Pool | Module], depth: Depth = same_depth) -> tf.Tensor:
    """Builds the rows of `table` one after the other; each is an end point under its name.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     table = {'Conv2d_1a': Conv(8, 3, stride=2), 'Mixed_2a': [[Conv(4)], [Pool('max'), Conv(6)]]}
      ...     print(build(net, tf.zeros([1, 32, 32, 3]), table).shape, list(net.end_points))
      ...     print([variable.op.name for variable in tf.trainable_variables() if 'weights' in variable.op.name][1:])
      (1, 16, 16, 10) ['Conv2d_1a', 'Mixed_2a']
      ['Mixed_2a/Branch_0/Conv2d_0a_1x1/weights', 'Mixed_2a/Branch_1/Conv2d_0b_1x1/weights']
    """
    for name, row in table.items():
        if isinstance(row, Conv):
            x = _conv(net, x, row, name, depth)
        elif isinstance(row, Pool):
            x = _pool(net, x, row)
        else:
            with net.scope(name):
                x = branches(net, x, row, depth)
        net.end_point(name, x)
    return x


def branches(net: Layers, x: tf.Tensor, module: Module, depth: Depth = same_depth) -> tf.Tensor:
    """Builds the branches of a module and concatenates their channels."""
    outputs = []
    for number, branch in enumerate(module):
        with net.scope(f"Branch_{number}"):
            outputs.append(_branch(net, x, branch, depth))
    return net.concat(outputs)


def _branch(net: Layers, x: tf.Tensor, branch: Branch, depth: Depth) -> tf.Tensor:
    for place, step in enumerate(branch):
        if isinstance(step, Pool):
            x = _pool(net, x, step)
        elif isinstance(step, Conv):
            x = _conv(net, x, step, _name(step, place), depth)
        else:
            x = net.concat([_conv(net, x, conv, _name(conv, place + turn), depth) for turn, conv in enumerate(step)])
    return x


def _name(conv: Conv, place: int) -> str:
    height, width = (conv.kernel, conv.kernel) if isinstance(conv.kernel, int) else conv.kernel
    shrinks = conv.stride > 1 or conv.padding == "VALID"
    return f"Conv2d_{'1a' if shrinks else '0' + 'abcdefgh'[place]}_{height}x{width}"


def _conv(net: Layers, x: tf.Tensor, conv: Conv, name: str, depth: Depth) -> tf.Tensor:
    net = net.styled(padding=conv.padding, initializer=conv.initializer or net.style.initializer)
    return net.conv(x, depth(conv.depth), conv.kernel, conv.stride, scope=conv.scope or name)


def _pool(net: Layers, x: tf.Tensor, pool: Pool) -> tf.Tensor:
    layer = {"max": net.max_pool, "avg": net.avg_pool}[pool.kind]
    return layer(x, pool.kernel, pool.stride, padding=pool.padding)


def window(net: Layers, x: tf.Tensor, length: int) -> tuple[int, int]:
    """Returns a window of that length, or of the size of `x` if that is smaller."""
    height, width = (length if known is None else min(length, known) for known in net.size(x))
    return height, width


def classified(
    net: Layers, x: tf.Tensor, num_classes: int | None, *, scope: str, pooling: str, pooled_length: int,
    dropout_keep_prob: float, spatial_squeeze: bool, global_pool: bool, before_logits: str | None = None,
) -> tf.Tensor:  # fmt: skip
    """The last layers of Inception v1 to v3: pooling, dropout, logits by a 1x1 convolution, predictions.

    Args:
      net: the layers.
      x: the last features.
      num_classes: None: the pooled features are the result.
      scope: of the convolution.
      pooling: the end point of the pooled features.
      pooled_length: height and width of the pooling window, that of the features of an image of the published size.
      dropout_keep_prob: the fraction of the pooled features that is kept in training.
      spatial_squeeze: the logits are [batch, classes]; the whole image is pooled, whatever its size.
      global_pool: pool the whole image, under the end point `global_pool`. Without it and without `spatial_squeeze`
        a larger image has logits for every window in it.
      before_logits: the end point of what the logits are made of; None is none.
    """
    with net.scope("Logits"):
        if global_pool:
            x = net.end_point("global_pool", net.global_pool(x))
        elif spatial_squeeze or None in net.size(x):
            x = net.end_point(pooling, net.global_pool(x))
        else:
            x = net.end_point(pooling, net.avg_pool(x, window(net, x, pooled_length), 1))
        if num_classes is None:
            return x
        x = net.dropout(x, dropout_keep_prob)
        if before_logits:
            net.end_point(before_logits, x)
        x = net.styled(activation=None, batch_norm=None).conv(x, num_classes, 1, scope=scope)
        return predicted(net, net.squeeze(x) if spatial_squeeze else x)


def classified_dense(
    net: Layers, x: tf.Tensor, num_classes: int | None, dropout_keep_prob: float,
    dense: Callable[[Layers, tf.Tensor, int, str], tf.Tensor],
) -> tf.Tensor:  # fmt: skip
    """The last layers of Inception v4 and Inception-ResNet: global pooling, dropout, logits by `dense`, predictions.

    `dense` is given the layers, [batch, features], the number of classes and the scope.
    """
    with net.scope("Logits"):
        x = net.end_point("global_pool", net.global_pool(x))
        if num_classes is None:
            return x
        x = net.end_point("PreLogitsFlatten", net.squeeze(net.dropout(x, dropout_keep_prob)))
        return predicted(net, dense(net, x, num_classes, "Logits"))


def predicted(net: Layers, logits: tf.Tensor) -> tf.Tensor:
    """Adds the logits and their softmax to the end points; returns the logits."""
    net.end_point("Predictions", net.softmax(logits, name="Predictions"))
    return net.end_point("Logits", logits)


def auxiliary_features(
    net: Layers, x: tf.Tensor, depths: tuple[int, int], scope: str, initializer: Any = None
) -> tf.Tensor:
    """Returns the features of an auxiliary head, [batch, 1, 1, depth], in the current scope.

    Args:
      net: the layers.
      x: features in the middle of the network, 17x17 for an image of 299x299.
      depths: depths of the two convolutions.
      scope: scope of the second convolution, with placeholders for height and width of its kernel.
      initializer: initializer of the second convolution; None: the style's.
    """
    x = net.avg_pool(x, window(net, x, 5), 3)
    x = net.conv(x, depths[0], 1, scope="Conv2d_1b_1x1")
    kernel = window(net, x, 5)
    valid = net.styled(padding="VALID", initializer=initializer or net.style.initializer)
    x = valid.conv(x, depths[1], kernel, scope=scope.format(*kernel))
    # 1x1 already, unless the image is larger than the published size.
    return x if net.size(x) == (1, 1) else net.global_pool(x)
