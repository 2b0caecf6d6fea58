"""Losses of sequences that are lists of tensors, and models for several lengths (buckets)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the cross entropy of every sequence, [batch]: the weighted sum or mean over the steps.

    Args:
      logits: a [batch, symbols] per step.
      targets: an integer [batch] per step.
      weights: a [batch] per step.
      average_across_timesteps: whether to divide by the sum of the weights.
      softmax_loss_function: replaces the cross entropy; called with `labels` and `logits`.
      name: name of the operations.

    Example:
      >>> with tf.Graph().as_default(), v1.Session() as session:
      ...     loss = sequence_loss_by_example([tf.zeros([2, 4])], [tf.constant([1, 3])], [tf.ones([2])])
      ...     print(session.run(loss).round(4))
      [1.3863 1.3863]
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            "logits, targets and weights must have the same number of steps, "
            f"got {len(logits)}, {len(targets)} and {len(weights)}"
        )
    with v1.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        steps = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                labels = tf.reshape(target, [-1])
                loss = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            steps.append(loss * weight)
        total = tf.add_n(steps)
        # The constant is TensorFlow 1's: a sequence without weights has the loss 0.
        return total / (tf.add_n(list(weights)) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the sum of `sequence_loss_by_example` over the batch, or its mean with `average_across_batch`."""
    with v1.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        losses = sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        total = tf.reduce_sum(losses)
        return total / tf.cast(tf.shape(targets[0])[0], total.dtype) if average_across_batch else total


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[list[Any], list[Any]], tuple[Any, Any]],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """Builds a model once per bucket, with shared variables.

    Args:
      encoder_inputs: a tensor per step, as many as the largest bucket has.
      decoder_inputs: a tensor per step.
      targets: an integer [batch] per step.
      weights: a [batch] per step.
      buckets: pairs of the number of encoder steps and the number of decoder steps, the largest last.
      seq2seq: called with the encoder inputs and decoder inputs of a bucket, returns outputs and state.
      softmax_loss_function: as in `sequence_loss`.
      per_example_loss: whether a loss is [batch], or a scalar.
      name: name of the operations.

    Returns:
      The outputs and the loss of each bucket.
    """
    most_in, most_out = buckets[-1]
    for argument, given, needed in (
        ("encoder_inputs", encoder_inputs, most_in),
        ("targets", targets, most_out),
        ("weights", weights, most_out),
    ):
        if len(given) < needed:
            raise ValueError(f"{argument} must have at least the {needed} steps of the last bucket, got {len(given)}")
    loss_of = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs, losses = [], []
    with v1.name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs, *targets, *weights]):
        for number, (steps_in, steps_out) in enumerate(buckets):
            with v1.variable_scope(v1.get_variable_scope(), reuse=True if number else None):
                output, _ = seq2seq(list(encoder_inputs[:steps_in]), list(decoder_inputs[:steps_out]))
                loss = loss_of(
                    output,
                    list(targets[:steps_out]),
                    list(weights[:steps_out]),
                    softmax_loss_function=softmax_loss_function,
                )
            outputs.append(output)
            losses.append(loss)
    return outputs, losses
