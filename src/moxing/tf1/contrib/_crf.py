"""Linear-chain conditional random fields: likelihood and Viterbi decoding.

The score of the tags y of a sequence x is the sum over its positions of x[t, y[t]], the unary scores, and of
transition_params[y[t-1], y[t]], the binary scores. Its probability is exp(score - log_norm), where log_norm is the
log of the sum over all tags. Only the first `sequence_lengths[i]` positions of sequence i count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
RNNCell: Any = v1.nn.rnn_cell.RNNCell


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """Returns the sum of the unary scores of every sequence, [batch].

    Args:
      tag_indices: integer [batch, time].
      sequence_lengths: integer [batch].
      inputs: [batch, time, tags], the unary scores.

    Example:
      >>> with tf.Graph().as_default(), v1.Session() as session:
      ...     score = crf_unary_score([[1, 0]], [2], tf.constant([[[0.0, 3.0], [4.0, 0.0]]]))
      ...     print(session.run(score))
      [7.]
    """
    inputs = tf.convert_to_tensor(inputs)
    chosen = tf.gather(inputs, tag_indices, axis=2, batch_dims=2)
    return _sum_of_valid(chosen, _position_mask(sequence_lengths, inputs))


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """Returns the sum of the transition scores of every sequence, [batch].

    Args:
      tag_indices: integer [batch, time].
      sequence_lengths: integer [batch].
      transition_params: [tags, tags]: the score of the second tag after the first.
    """
    tags = tf.convert_to_tensor(tag_indices)
    pairs = tf.stack([tags[:, :-1], tags[:, 1:]], axis=2)
    scores = tf.gather_nd(tf.convert_to_tensor(transition_params), pairs)
    return _sum_of_valid(scores, _position_mask(sequence_lengths, tags)[:, 1:])


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """Returns the score of the given tags of every sequence, [batch]: not normalised, 0 for an empty sequence."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """Returns the log of the summed exp(score) of all tag sequences that a bitmap allows, [batch].

    Args:
      inputs: [batch, time, tags], the unary scores.
      tag_bitmap: bool [batch, time, tags], which tags are allowed at a position.
      sequence_lengths: integer [batch].
      transition_params: [tags, tags].
    """
    inputs = tf.convert_to_tensor(inputs)
    # All tags are allowed in the padding: a position without any would make the gradient NaN.
    padding = tf.logical_not(_position_mask(sequence_lengths, inputs))
    allowed = tf.logical_or(tf.cast(tag_bitmap, tf.bool), padding[:, :, None])
    scores = tf.where(allowed, inputs, tf.fill(tf.shape(inputs), tf.constant(-np.inf, inputs.dtype)))
    return crf_log_norm(scores, sequence_lengths, transition_params)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """Returns the log of the sum of exp(score) over all tag sequences, [batch]; 0 for an empty sequence.

    Args:
      inputs: [batch, time, tags], the unary scores.
      sequence_lengths: integer [batch].
      transition_params: [tags, tags].
    """
    inputs = tf.convert_to_tensor(inputs)
    lengths = tf.convert_to_tensor(sequence_lengths)
    _, alphas = _steps_after_first(CrfForwardRnnCell(transition_params), inputs, lengths, inputs.dtype)
    log_norm = tf.reduce_logsumexp(alphas, axis=1)
    return tf.where(lengths > 0, log_norm, tf.zeros_like(log_norm))


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """Returns the log-likelihood of the given tags of every sequence, [batch], and the transition scores.

    Args:
      inputs: [batch, time, tags], the unary scores.
      tag_indices: integer [batch, time].
      sequence_lengths: integer [batch].
      transition_params: [tags, tags]. Default: the variable `transitions`, created here.
    """
    inputs = tf.convert_to_tensor(inputs)
    if transition_params is None:
        tags = inputs.shape[2]
        if tags is None:
            raise ValueError(f"inputs must have a static last dimension, the number of tags: got {inputs.shape}")
        transition_params = v1.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[Any], Any]:
    """Returns the tags with the highest score of one sequence, and that score; computed by NumPy.

    Args:
      score: array [time, tags], the unary scores without padding.
      transition_params: array [tags, tags].

    Example:
      >>> tags, score = viterbi_decode(np.array([[1.0, 2.0], [3.0, 2.5]]), np.array([[0.0, 0.0], [-1.0, 0.0]]))
      >>> [int(tag) for tag in tags], float(score)
      ([1, 1], 4.5)
    """
    score = np.asarray(score)
    best = score[0]
    origins = []
    for unary in score[1:]:
        paths = best[:, None] + transition_params
        origins.append(paths.argmax(axis=0))
        best = unary + paths.max(axis=0)
    tags = [np.argmax(best)]
    for origin in reversed(origins):
        tags.append(origin[tags[-1]])
    return tags[::-1], np.max(best)


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """Returns the tags with the highest score of every sequence, int32 [batch, time], and these scores, [batch].

    Tags in the padding are 0.

    Args:
      potentials: [batch, time, tags], the unary scores.
      transition_params: [tags, tags].
      sequence_length: integer [batch].
    """
    potentials = tf.convert_to_tensor(potentials)
    lengths = tf.convert_to_tensor(sequence_length)
    transitions = tf.maximum(lengths - 1, 0)
    origins, best = _steps_after_first(CrfDecodeForwardRnnCell(transition_params), potentials, lengths, tf.int32)
    last = tf.argmax(best, axis=1, output_type=tf.int32)[:, None]
    backward = CrfDecodeBackwardRnnCell(potentials.shape[2])
    reversed_origins = tf.reverse_sequence(origins, transitions, seq_axis=1)
    tags, _ = v1.nn.dynamic_rnn(backward, reversed_origins, transitions, initial_state=last, dtype=tf.int32)
    tags = tf.reverse_sequence(tf.concat([last, tags[:, :-1, 0]], axis=1), tf.maximum(lengths, 1), seq_axis=1)
    return tags, tf.reduce_max(best, axis=1)


class _CrfCell(RNNCell):
    """A step along the sequence. It has no variables, so it takes no part in the naming of layers."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        self._transitions = tf.convert_to_tensor(transition_params)[None]

    @property
    def state_size(self) -> int:
        return self._transitions.shape[1]

    @property
    def output_size(self) -> int:
        return self._transitions.shape[1]


class CrfForwardRnnCell(_CrfCell):
    """The forward algorithm: the state is the log of the summed exp(score) of all prefixes that end in each tag."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        alphas = inputs + tf.reduce_logsumexp(state[:, :, None] + self._transitions, axis=1)
        return alphas, alphas


class CrfDecodeForwardRnnCell(_CrfCell):
    """Viterbi, forward: the state is the best score that ends in each tag, the output the tag before it."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        paths = state[:, :, None] + self._transitions
        return tf.argmax(paths, axis=1, output_type=tf.int32), inputs + tf.reduce_max(paths, axis=1)


class CrfDecodeBackwardRnnCell(RNNCell):
    """Viterbi, backward: from a tag (the state) to the tag before it, which the inputs hold for each tag."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        tags = tf.gather(inputs, state, axis=1, batch_dims=1)
        return tags, tags


def _steps_after_first(cell: Any, scores: Any, lengths: Any, output_dtype: Any) -> tuple[Any, Any]:
    """Runs a cell over the scores of all positions but the first, which is its initial state.

    A last step, which no sequence reaches, makes as many outputs as positions: an RNN without any step fails.
    """
    inputs = tf.concat([scores[:, 1:], tf.zeros_like(scores[:, :1])], axis=1)
    steps = tf.maximum(lengths - 1, 0)
    return v1.nn.dynamic_rnn(cell, inputs, steps, initial_state=scores[:, 0], dtype=output_dtype)


def _position_mask(lengths: Any, sequences: Any) -> Any:
    """Returns bool [batch, time]: which positions belong to the sequence."""
    return tf.sequence_mask(lengths, tf.shape(sequences)[1])


def _sum_of_valid(scores: Any, mask: Any) -> Any:
    return tf.reduce_sum(tf.where(mask, scores, tf.zeros_like(scores)), axis=1)
