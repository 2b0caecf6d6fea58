"""The loss of sequences in one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the weighted cross entropy of a batch of sequences.

    Args:
      logits: [batch, time, symbols].
      targets: integer [batch, time].
      weights: [batch, time].
      average_across_timesteps: whether to average over the time, weighted.
      average_across_batch: whether to average over the batch, weighted.
      softmax_loss_function: replaces the cross entropy; called with `labels` and `logits`, flattened over batch and
        time.
      name: name of the operations.

    Returns:
      A scalar; [batch] without the average over the batch; [time] without that over the time; [batch, time] without
      both.

    Example:
      >>> with tf.Graph().as_default(), v1.Session() as session:
      ...     loss = sequence_loss(tf.zeros([1, 2, 4]), tf.constant([[1, 3]]), tf.constant([[1.0, 0.0]]))
      ...     print(round(float(session.run(loss)), 4))
      1.3863
    """
    logits, targets, weights = (tf.convert_to_tensor(value) for value in (logits, targets, weights))
    for argument, value, rank in (("logits", logits, 3), ("targets", targets, 2), ("weights", weights, 2)):
        if value.shape.rank not in (rank, None):
            raise ValueError(f"{argument} must have {rank} dimensions, got the shape {value.shape}")
    with v1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        flat_logits = tf.reshape(logits, [-1, tf.shape(logits)[2]])
        flat_targets = tf.reshape(targets, [-1])
        cross_entropy = softmax_loss_function or v1.nn.sparse_softmax_cross_entropy_with_logits
        losses = cross_entropy(labels=flat_targets, logits=flat_logits)
        losses = tf.reshape(losses, tf.shape(targets)) * weights
        axes = [axis for axis, averaged in ((0, average_across_batch), (1, average_across_timesteps)) if averaged]
        if not axes:
            return losses
        # The constant is TensorFlow 1's: without weights the loss is 0.
        return tf.reduce_sum(losses, axes) / (tf.reduce_sum(weights, axes) + 1e-12)
