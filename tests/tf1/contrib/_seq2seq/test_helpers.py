"""Helpers of decoders."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

#: After symbol n comes NEXT[n]; 0 is the end.
NEXT = [0, 3, 0, 2, 1]


class Successor(v1.nn.rnn_cell.RNNCell):
    """Its inputs are one-hot symbols, its outputs logits of their successors."""

    state_size = 1
    output_size = 5

    def call(self, inputs, state):
        return tf.matmul(inputs, tf.one_hot(NEXT, 5) * 50), state + 1


def decode(helper) -> tuple[np.ndarray, np.ndarray]:
    decoder = contrib.seq2seq.BasicDecoder(Successor(), helper, tf.zeros([2, 1]))
    outputs, _, lengths = contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=7)
    with v1.Session() as session:
        return session.run([outputs.sample_id, lengths])


@pytest.mark.parametrize("kind", ["greedy", "sampled", "inference", "custom"])
def test_outputs_are_fed_back_until_the_end(kind: str) -> None:
    seq2seq = contrib.seq2seq
    with tf.Graph().as_default():
        table, start = tf.eye(5), tf.constant([4, 3])
        if kind == "greedy":
            helper = seq2seq.GreedyEmbeddingHelper(table, start, 0)
        elif kind == "sampled":
            helper = seq2seq.SampleEmbeddingHelper(lambda ids: tf.one_hot(ids, 5), start, 0, softmax_temperature=0.5)
        elif kind == "inference":
            helper = seq2seq.InferenceHelper(
                lambda outputs: tf.argmax(outputs, -1, tf.int32),
                [],
                tf.int32,
                tf.one_hot(start, 5),
                lambda ids: tf.equal(ids, 0),
                lambda ids: tf.one_hot(ids, 5),
            )
        else:
            helper = seq2seq.CustomHelper(
                lambda: (tf.zeros([2], tf.bool), tf.one_hot(start, 5)),
                lambda time, outputs, state: tf.argmax(outputs, -1, tf.int32),
                lambda time, outputs, state, sample_ids: (tf.equal(sample_ids, 0), tf.one_hot(sample_ids, 5), state),
            )
        ids, lengths = decode(helper)
    assert ids[0].tolist() == [1, 3, 2, 0]
    assert ids[1, :2].tolist() == [2, 0]
    assert lengths.tolist() == [4, 2]


def test_the_temperature_and_the_seed_of_samples() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        flat = contrib.seq2seq.SampleEmbeddingHelper(tf.eye(2), [0], 1, softmax_temperature=1000.0, seed=3)
        samples = flat.sample(0, tf.constant([[0.0, 50.0]] * 400), None)
        assert 120 < session.run(samples).sum() < 280


def test_wrong_arguments_are_named() -> None:
    seq2seq = contrib.seq2seq
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match=r"start_tokens must be \[batch\], got the shape \(\)"):
            seq2seq.GreedyEmbeddingHelper(tf.eye(2), 1, 0)
        with pytest.raises(ValueError, match=r"end_token must be a scalar, got the shape \(1,\)"):
            seq2seq.GreedyEmbeddingHelper(tf.eye(2), [1], [0])
        with pytest.raises(ValueError, match=r"sequence_length must be \[batch\], got the shape \(\)"):
            seq2seq.TrainingHelper(tf.zeros([1, 2, 3]), 2)
        with pytest.raises(ValueError, match="batch_size is known after initialize"):
            _ = seq2seq.CustomHelper(None, None, None).batch_size
