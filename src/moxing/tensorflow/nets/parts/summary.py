"""A summary of a network: its layers, their parameters and multiply-adds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network, network


@dataclass
class LayerRow:
    """One layer.

    Attributes:
      name: scope of the layer.
      kinds: its operations, for example `conv 3x3/2`.
      output: shape of its output, without the batch axis.
      parameters: number of trained parameters.
      multiply_adds: multiplications with weights, for one image.
    """

    name: str
    kinds: list[str]
    output: list[int | None]
    parameters: int = 0
    multiply_adds: int = 0


def default_classes(found: Network) -> int:
    """Returns the number of classes that the network was published with.

    Example:
      >>> default_classes(network('resnet_v1_50')), default_classes(network('lenet'))
      (1000, 10)
    """
    return 10 if found.image_size < 100 else 1001 - found.labels_offset


def layer_rows(
    name: str, num_classes: int | None = None, image_size: int | None = None, training: bool = False
) -> list[LayerRow]:
    """Returns the layers of a network in the order in which they are built.

    Args:
      name: name of the network.
      num_classes: None: the published number.
      image_size: None: the published size.
      training: true for the training form, with auxiliary heads.

    Example:
      >>> for row in layer_rows('lenet')[:2]:
      ...     print(row.name, row.kinds, row.output, row.parameters, row.multiply_adds)
      LeNet/conv1 ['conv 5x5'] [28, 28, 32] 832 627200
      LeNet/MaxPool2d ['max pool 2x2/2'] [14, 14, 32] 0 0
    """
    found = network(name)
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
            layer = _layer_name(operation, rows)
            row = rows.setdefault(layer, LayerRow(layer, [], []))
            if kind:
                row.kinds.append(kind)
            row.output = operation.outputs[0].shape.as_list()[1:]
            row.multiply_adds += _multiply_adds(operation)
            row.parameters += sum(uncounted.pop(variable, 0) for variable in _variables_of(operation))
        return list(rows.values())


def _kind(operation: tf.Operation) -> str | None:
    """Describes an operation; empty if it belongs to the layer before it, None if it is no layer."""
    if operation.type in ("Conv2D", "DepthwiseConv2dNative"):
        height, width, channels, _ = operation.inputs[1].shape.as_list()
        # In training, every group is a convolution with a part of the weights.
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
    # Biases that a network adds without Layers.
    return "" if operation.type == "AddV2" and any(_variables_of(operation)) else None


def _stride(operation: tf.Operation) -> str:
    _, height, width, _ = operation.get_attr("strides")
    return "" if (height, width) == (1, 1) else f"/{height}" if height == width else f"/{height}x{width}"


def _layer_name(operation: tf.Operation, rows: dict[str, LayerRow]) -> str:
    if operation.type in ("MaxPool", "AvgPool", "Mean"):
        return str(operation.name)
    scope = str(operation.name).rpartition("/")[0]
    # Batch normalisation has its own scope inside of that of its convolution.
    return scope.removesuffix("/BatchNorm") if scope.removesuffix("/BatchNorm") in rows else scope


def _multiply_adds(operation: tf.Operation) -> int:
    """Returns the number of elements of the output times the products that each is a sum of."""
    if operation.type not in ("Conv2D", "DepthwiseConv2dNative", "MatMul"):
        return 0
    *reach, channels, _ = (1, 1, *operation.inputs[1].shape.as_list())[-4:]
    products = math.prod(reach) * (1 if operation.type == "DepthwiseConv2dNative" else channels)
    return int(math.prod(operation.outputs[0].shape.as_list()) * products)


def _variables_of(operation: tf.Operation) -> Iterator[str]:
    """Yields the names of the variables that an operation reads."""
    for value in operation.inputs:
        source = value.op
        while source.type in ("Identity", "Cast", "Split"):
            source = source.inputs[-1].op
        if source.type == "ReadVariableOp":
            yield str(source.inputs[0].op.name)
