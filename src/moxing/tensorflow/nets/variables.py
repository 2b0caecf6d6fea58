"""The weights of a network: stored in one type, used in another, with their decay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def network_variable(
    name: str, shape: Sequence[int], used_as: tf.DType, asked_as: tf.DType, initializer: Any, decay: float
) -> tf.Tensor:
    """A trainable variable in the current scope, in the type that the network computes in.

    Args:
      name: its name.
      shape: its shape.
      used_as: the type that the network computes in.
      asked_as: the type of the script's images. Where half precision is computed in float32 it is another one.
      initializer: of the variable.
      decay: factor of its L2 loss; 0 makes none.

    Example:
      >>> with tf.Graph().as_default():
      ...     network_variable('w', [3], tf.float32, tf.float32, tf.ones_initializer(), 0.5).shape
      ...     tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)[0].name
      TensorShape([3])
      'w/Regularizer/l2_regularizer/mul:0'
    """
    value = tf.get_variable(
        name, list(shape), asked_as, initializer=initializer, regularizer=_decaying(decay, asked_as) if decay else None
    )
    if value.dtype == used_as:
        return value
    if value.dtype.is_floating and isinstance(value, tf.Tensor) and value.op.type == "Cast":
        # mox.var_scope: the variable itself has another type, and what we were given is rounded to the one asked for.
        stored = value.op.inputs[0]
        if stored.dtype == used_as:
            return stored
    return tf.cast(value, used_as)


def _decaying(factor: float, dtype: tf.DType) -> Callable[[tf.Tensor], tf.Tensor]:
    def regularizer(weights: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("l2_regularizer") as name:
            # A sum of millions of squares: in float32 whatever the weights are. But in the type of the images it is
            # added to the loss of a script, as its logits are.
            return tf.cast(tf.nn.l2_loss(tf.cast(weights, tf.float32)) * factor, dtype, name=name)

    return regularizer
