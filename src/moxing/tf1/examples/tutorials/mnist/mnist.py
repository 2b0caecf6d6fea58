"""The network of the TensorFlow 1 tutorial: two hidden layers, a loss, a training operation and an evaluation."""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["IMAGE_PIXELS", "IMAGE_SIZE", "NUM_CLASSES", "evaluation", "inference", "loss", "training"]

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """Builds the network.

    Args:
      images: float32 [batch, 784].
      hidden1_units: size of the first hidden layer.
      hidden2_units: size of the second.

    Returns:
      The logits, [batch, 10].

    Example:
      >>> with tf.Graph().as_default():
      ...   inference(tf.zeros([2, 784]), 8, 4).shape.as_list()
      [2, 10]
    """
    hidden1 = tf.nn.relu(_dense("hidden1", images, hidden1_units))
    hidden2 = tf.nn.relu(_dense("hidden2", hidden1, hidden2_units))
    return _dense("softmax_linear", hidden2, NUM_CLASSES)


def _dense(name: str, inputs: Any, units: int) -> Any:
    depth = inputs.shape.as_list()[-1]
    with tf.name_scope(name):
        start = tf.truncated_normal([depth, units], stddev=1.0 / math.sqrt(float(depth)))
        weights = tf.Variable(start, name="weights")
        biases = tf.Variable(tf.zeros([units]), name="biases")
        return tf.matmul(inputs, weights) + biases


def loss(logits: Any, labels: Any) -> Any:
    """Returns the mean cross entropy.

    Args:
      logits: [batch, 10].
      labels: class numbers, [batch].
    """
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.cast(labels, tf.int64), logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    """Returns an operation that does one step of gradient descent and counts it in `global_step`."""
    tf.summary.scalar("loss", loss)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """Returns how many of the logits are highest at their label, int32."""
    right = tf.nn.in_top_k(predictions=logits, targets=labels, k=1)
    return tf.reduce_sum(tf.cast(right, tf.int32))
