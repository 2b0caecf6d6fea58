"""What a network is made of: its layers, their parameters, the work that they do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.catalogue import NetworkKeys, network
from moxing.tensorflow.nets.layers import Layers
from moxing.tensorflow.nets.network import Network


@dataclass
class LayerRow:
    """One layer.

    Attributes:
      name: its scope.
      kinds: what it does, for example `conv 3x3/2`.
      output: shape of its output without the batch.
      parameters: how many numbers of it are trained.
      multiply_adds: multiplications with a weight, for one image.
    """

    name: str
    kinds: list[str]
    output: list[int | None]
    parameters: int = 0
    multiply_adds: int = 0


def default_classes(found: Network) -> int:
    """The number of classes that the network was published with.

    Example:
      >>> default_classes(network(NetworkKeys.RESNET_V1_50)), default_classes(network(NetworkKeys.LENET))
      (1000, 10)
    """
    return 10 if found.image_size < 100 else 1001 - found.labels_offset


def layer_rows(
    key: NetworkKeys, num_classes: int | None = None, image_size: int | None = None, training: bool = False
) -> list[LayerRow]:
    """The layers of a network in the order in which they were built.

    Args:
      key: the network.
      num_classes: None is the published number.
      image_size: None is the published size.
      training: as it trains, with auxiliary heads.

    Example:
      >>> for row in layer_rows(NetworkKeys.LENET)[:2]:
      ...     print(row.name, row.kinds, row.output, row.parameters, row.multiply_adds)
      LeNet/conv1 ['conv 5x5'] [28, 28, 32] 832 627200
      LeNet/MaxPool2d ['max pool 2x2/2'] [14, 14, 32] 0 0
    """
    found = network(key)
    size = image_size or found.image_size
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [1, size, size, found.channels])
        net = Layers(training=training)
        found.architecture(net, images, default_classes(found) if num_classes is None else num_classes)
        rows: dict[str, LayerRow] = {}
        uncounted = {variable.op.name: math.prod(variable.shape.as_list()) for variable in tf.trainable_variables()}
        for operation in graph.get_operations():
            kind = _kind(operation)
            if kind is None:
                continue
            name = _layer_name(operation, rows)
            row = rows.setdefault(name, LayerRow(name, [], []))
            if kind:
                row.kinds.append(kind)
            row.output = operation.outputs[0].shape.as_list()[1:]
            row.multiply_adds += _multiply_adds(operation)
            row.parameters += sum(uncounted.pop(variable, 0) for variable in _variables_of(operation))
        return list(rows.values())


def _kind(operation: tf.Operation) -> str | None:
    """In words what an operation is; empty for what belongs to the layer in front of it, None for what is no layer."""
    if operation.type in ("Conv2D", "DepthwiseConv2dNative"):
        height, width, channels, _ = operation.inputs[1].shape.as_list()
        # In training, groups are convolutions of their own with parts of the weights.
        parts = operation.inputs[1].op.outputs
        if operation.inputs[1] is not parts[0]:
            return ""
        groups = operation.inputs[0].shape.as_list()[3] // channels if operation.type == "Conv2D" else 1
        groups = max(groups, len(parts))
        word = "depthwise" if operation.type != "Conv2D" else "conv" if groups == 1 else f"{groups} groups of conv"
        return f"{word} {height}x{width}{_stride(operation)}"
    if operation.type in ("MaxPool", "AvgPool"):
        _, height, width, _ = operation.get_attr("ksize")
        return f"{'max' if operation.type == 'MaxPool' else 'avg'} pool {height}x{width}{_stride(operation)}"
    if operation.type == "Mean" and operation.name.endswith("global_pool"):
        return "global pool"
    if operation.type == "MatMul":
        return "dense"
    if operation.type in ("BiasAdd", "FusedBatchNormV3"):
        return ""
    # Biases that a network adds by itself.
    return "" if operation.type == "AddV2" and any(_variables_of(operation)) else None


def _stride(operation: tf.Operation) -> str:
    _, height, width, _ = operation.get_attr("strides")
    return "" if (height, width) == (1, 1) else f"/{height}" if height == width else f"/{height}x{width}"


def _layer_name(operation: tf.Operation, rows: dict[str, LayerRow]) -> str:
    if operation.type in ("MaxPool", "AvgPool", "Mean"):
        return str(operation.name)
    scope = str(operation.name).rpartition("/")[0]
    # Batch normalisation has a scope of its own inside that of the convolution that it belongs to.
    return scope.removesuffix("/BatchNorm") if scope.removesuffix("/BatchNorm") in rows else scope


def _multiply_adds(operation: tf.Operation) -> int:
    """How many products every number of the output is a sum of, times how many there are."""
    if operation.type not in ("Conv2D", "DepthwiseConv2dNative", "MatMul"):
        return 0
    *reach, channels, _ = (1, 1, *operation.inputs[1].shape.as_list())[-4:]
    products = math.prod(reach) * (1 if operation.type == "DepthwiseConv2dNative" else channels)
    return int(math.prod(operation.outputs[0].shape.as_list()) * products)


def _variables_of(operation: tf.Operation) -> Iterator[str]:
    """The names of the variables that an operation reads."""
    for value in operation.inputs:
        source = value.op
        while source.type in ("Identity", "Cast", "Split"):
            source = source.inputs[-1].op
        if source.type == "ReadVariableOp":
            yield str(source.inputs[0].op.name)
