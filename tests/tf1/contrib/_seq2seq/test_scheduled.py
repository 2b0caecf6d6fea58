"""Scheduled sampling."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1
BATCH = 400


class Echo(v1.nn.rnn_cell.RNNCell):
    """Its output and its state are its inputs."""

    state_size = 3
    output_size = 3

    def call(self, inputs, state):
        return inputs[:, :3] * 50, inputs[:, :3]


def decode(helper) -> tuple[np.ndarray, np.ndarray]:
    decoder = contrib.seq2seq.BasicDecoder(Echo(), helper, tf.zeros([BATCH, 3]))
    outputs, _, _ = contrib.seq2seq.dynamic_decode(decoder)
    with v1.Session() as session:
        return session.run([outputs.rnn_output, outputs.sample_id])


@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_a_part_of_the_inputs_is_sampled(probability: float) -> None:
    """The first inputs are symbol 0, the others 1; sampling repeats the symbol before."""
    with tf.Graph().as_default():
        given = tf.one_hot(np.array([[0, 1, 1]] * BATCH), 3)
        outputs, ids = decode(
            contrib.seq2seq.ScheduledEmbeddingTrainingHelper(given, [3] * BATCH, tf.eye(3), probability)
        )
    sampled = ids[:, 0] >= 0
    assert abs(sampled.mean() - probability) < 0.1
    assert (ids[sampled, 0] == 0).all()
    np.testing.assert_array_equal(outputs[:, 1].argmax(-1), np.where(sampled, 0, 1))


def test_outputs_as_inputs_with_auxiliary_inputs() -> None:
    with tf.Graph().as_default():
        given = tf.one_hot(np.array([[0, 1, 1]] * BATCH), 3)
        helper = contrib.seq2seq.ScheduledOutputTrainingHelper(
            given,
            [3] * BATCH,
            0.5,
            next_inputs_fn=lambda outputs: outputs / 50,
            auxiliary_inputs=tf.ones([BATCH, 3, 2]),
        )
        assert helper.initialize()[1].shape.as_list() == [BATCH, 5]
        outputs, chosen = decode(helper)
        with pytest.raises(ValueError, match=r"scalar or \[batch\], got the shape \(1, 1\)"):
            contrib.seq2seq.ScheduledOutputTrainingHelper(given, [3] * BATCH, [[0.5]])
    assert 0.4 < chosen[:, 0].mean() < 0.6
    np.testing.assert_array_equal(outputs[:, 1].argmax(-1), np.where(chosen[:, 0], 0, 1))
