"""Data, and what a graph computes in half precision."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf

IMAGES = np.random.RandomState(0).rand(48, 8, 8, 3).astype(np.float32)
LABELS = np.arange(48) % 4
PRODUCTS = ("Conv2D", "MatMul", "BatchMatMulV2", "DepthwiseConv2dNative", "Conv2DBackpropInput", "Conv3D")


def images_and_labels(mode):
    data = tf.data.Dataset.from_tensor_slices((IMAGES + LABELS[:, None, None, None].astype(np.float32) / 4, LABELS))
    return data.repeat().make_one_shot_iterator().get_next()


def nodes(graph=None):
    """All nodes of a graph and of its functions."""
    graph_def = (graph or tf.get_default_graph()).as_graph_def()
    return [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]


def product_types(graph=None):
    return {tf.as_dtype(node.attr["T"].type) for node in nodes(graph) if node.op in PRODUCTS}


def has_half(graph):
    return any(tf.float16 in [output.dtype for output in op.outputs] for op in graph.get_operations()) or any(
        node.attr[key].type == tf.float16.as_datatype_enum for node in nodes(graph) for key in ("T", "DstT", "dtype")
    )


def cross_entropy(logits, labels):
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)
