"""The loop of decoders."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

LENGTHS = [3, 1, 4]
INPUTS = np.random.RandomState(1).randn(3, 5, 2).astype(np.float32)


def test_training_is_dynamic_rnn_with_a_layer() -> None:
    seq2seq = contrib.seq2seq
    with tf.Graph().as_default(), v1.Session() as session:
        batch = v1.placeholder_with_default(INPUTS, [None, None, 2])
        cell, layer = contrib.rnn.GRUCell(4, name="gru_cell"), v1.layers.Dense(6, name="out")
        helper = seq2seq.TrainingHelper(batch, tf.constant(LENGTHS))
        decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(tf.shape(batch)[0], tf.float32), layer)
        result = seq2seq.dynamic_decode(decoder, impute_finished=True)
        plain = seq2seq.dynamic_decode(decoder, output_time_major=True, maximum_iterations=2, scope="again")
        names = [one.op.name for one in v1.trainable_variables()]
        expected, last = v1.nn.dynamic_rnn(cell, batch, LENGTHS, dtype=tf.float32)
        gradients = tf.gradients(tf.reduce_sum(result[0].rnn_output), v1.trainable_variables())
        assert result[0].rnn_output.shape.as_list() == [3, None, 6]
        session.run(v1.global_variables_initializer())
        result, plain, expected, last, gradients = session.run([result, plain, layer(expected), last, gradients])
    assert names == [
        *(f"decoder/gru_cell/{part}/{kind}" for part in ("gates", "candidate") for kind in ("kernel", "bias")),
        *("decoder/out/kernel", "decoder/out/bias"),
    ]
    outputs, state, lengths = result
    mask = np.arange(4) < np.array(LENGTHS)[:, None]
    np.testing.assert_array_equal(lengths, LENGTHS)
    np.testing.assert_allclose(outputs.rnn_output, expected[:, :4] * mask[..., None], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(outputs.sample_id, expected[:, :4].argmax(-1) * mask)
    np.testing.assert_allclose(state, last, rtol=1e-5)
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)
    assert plain[0].rnn_output.shape == (2, 3, 6)
    np.testing.assert_array_equal(plain[2], [2, 1, 2])


def test_a_decoder_of_the_user() -> None:
    """It counts down from a number per row, and is finished at 0."""
    seq2seq = contrib.seq2seq

    class CountDown(seq2seq.Decoder):
        batch_size = 3
        output_size = tf.TensorShape([])
        output_dtype = tf.int32

        def initialize(self, name=None):
            return tf.constant([False, True, False]), tf.constant([3, 0, 1]), tf.constant(0)

        def step(self, time, inputs, state, name=None):
            return inputs, state + 1, tf.maximum(inputs - 1, 0), inputs <= 1

    with tf.Graph().as_default(), v1.Session() as session:
        outputs, state, lengths = session.run(seq2seq.dynamic_decode(CountDown()))
        with pytest.raises(ValueError, match=r"maximum_iterations must be a scalar, got the shape \(1,\)"):
            seq2seq.dynamic_decode(CountDown(), maximum_iterations=[1])
    assert outputs.tolist() == [[3, 2, 1], [0, 0, 0], [1, 0, 0]]
    assert (int(state), lengths.tolist()) == (3, [3, 0, 1])


def test_wrong_arguments_are_named() -> None:
    seq2seq = contrib.seq2seq
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="output_layer must be a layer such as tf.layers.Dense, got 3"):
            seq2seq.BasicDecoder(contrib.rnn.GRUCell(2), None, None, output_layer=3)
        with pytest.raises(TypeError, match="decoder must be a Decoder, got None"):
            seq2seq.dynamic_decode(None)
