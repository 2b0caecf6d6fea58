"""`tf.contrib.nn` and `tf.contrib.sparsemax`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["alpha_dropout", "nth_element", "scaled_softplus", "sparsemax", "sparsemax_loss"]

# The value at which SELU saturates, times its scale.
_SATURATION = -1.7580993408473766


def alpha_dropout(x: Any, keep_prob: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Any:
    """Dropout for SELU: dropped values saturate, and mean and variance stay the same.

    Args:
      x: the values.
      keep_prob: the probability that a value is kept, in (0, 1].
      noise_shape: the shape of the random choice; that of x by default.
      seed: of the random choice.
      name: of the operation.
    """
    if isinstance(keep_prob, int | float) and not 0 < keep_prob <= 1:
        raise ValueError(f"keep_prob must be in (0, 1], got {keep_prob}")
    with tf.name_scope(name, "alpha_dropout", [x]):
        x = tf.convert_to_tensor(x)
        if isinstance(keep_prob, int | float) and keep_prob == 1:
            return x
        keep = tf.cast(keep_prob, x.dtype)
        shape = tf.shape(x) if noise_shape is None else noise_shape
        kept = tf.cast(tf.random_uniform(shape, seed=seed, dtype=x.dtype) < keep, x.dtype)
        scale = tf.pow(keep + _SATURATION**2 * keep * (1 - keep), -0.5)
        shift = -scale * _SATURATION * (1 - keep)
        return scale * (x * kept + _SATURATION * (1 - kept)) + shift


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Any:
    """Returns alpha * ln(1 + exp(x / alpha)), at most `clip`."""
    with tf.name_scope(name, "scaled_softplus", [x]):
        y = alpha * tf.nn.softplus(x / alpha)
        return y if clip is None else tf.minimum(y, clip)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Any:
    """Returns the n-th smallest (`reverse`: largest) value of the last dimension; n counts from 0."""
    from tensorflow.python.ops import nn_ops

    return nn_ops.nth_element(input, n, reverse, name)


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits` with the arguments in the order of 0.12."""
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with the arguments in the order of 0.12."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: str | None = None) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with the arguments in the order of 0.12."""
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def sparsemax(logits: Any, name: str | None = None) -> Any:
    """Projects every row of logits onto the probability simplex, which gives exact zeros.

    Args:
      logits: [batch, classes].
      name: of the operation.
    """
    with tf.name_scope(name, "sparsemax", [logits]):
        logits = tf.convert_to_tensor(logits)
        count = tf.shape(logits)[1]
        z = logits - tf.reduce_mean(logits, axis=1, keepdims=True)
        ordered = tf.nn.top_k(z, count).values
        sums = tf.cumsum(ordered, axis=1)
        ranks = tf.cast(tf.range(1, count + 1), logits.dtype)
        support = tf.reduce_sum(tf.cast(1 + ranks * ordered > sums, tf.int32), axis=1)
        rows = tf.range(tf.shape(logits)[0])
        threshold = (tf.gather_nd(sums, tf.stack([rows, support - 1], 1)) - 1) / tf.cast(support, logits.dtype)
        return tf.maximum(tf.zeros([], logits.dtype), z - threshold[:, None])


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Any:
    """Returns the loss of sparsemax for every row.

    Args:
      logits: [batch, classes].
      sparsemax: what `sparsemax(logits)` returned.
      labels: the wanted probabilities.
      name: of the operation.
    """
    with tf.name_scope(name, "sparsemax_loss", [logits]):
        logits = tf.convert_to_tensor(logits)
        shifted = logits - tf.reduce_mean(logits, axis=1, keepdims=True)
        inside = tf.where(sparsemax > 0, sparsemax * (shifted - 0.5 * sparsemax), tf.zeros_like(sparsemax))
        return tf.reduce_sum(inside + labels * (0.5 * labels - shifted), axis=1)
