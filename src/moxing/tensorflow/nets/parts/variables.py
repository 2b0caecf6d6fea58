"""The weights of a network: their type and their L2 losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def network_variable(
    name: str, shape: Sequence[int], used_as: tf.DType, asked_as: tf.DType, initializer: Any, decay: float
) -> tf.Tensor:
    """Creates a trainable variable in the current scope; returns it in the type that the network computes in.

    Args:
      name: name of the variable.
      shape: shape of the variable.
      used_as: type that the network computes in.
      asked_as: type of the variable: that of the script's images, which may be half precision.
      initializer: initializer of the variable.
      decay: factor of its L2 loss; 0: no loss.

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
        # mox.var_scope: the variable has another type, and `value` is a cast of it.
        stored = value.op.inputs[0]
        if stored.dtype == used_as:
            return stored
    return tf.cast(value, used_as)


def _decaying(factor: float, dtype: tf.DType) -> Callable[[tf.Tensor], tf.Tensor]:
    def regularizer(weights: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("l2_regularizer") as name:
            # Millions of squares are added up in float32; the result has the type of the images, like the logits.
            return tf.cast(tf.nn.l2_loss(tf.cast(weights, tf.float32)) * factor, dtype, name=name)

    return regularizer
