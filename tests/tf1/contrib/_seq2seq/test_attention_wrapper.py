"""Cells with attention."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

#: The variables of a checkpoint of TensorFlow 1.12.
NAMES = {
    "memory_layer/kernel": [3, 6],
    "decoder/attention_wrapper/bahdanau_attention/query_layer/kernel": [4, 6],
    "decoder/attention_wrapper/bahdanau_attention/attention_v": [6],
    "decoder/attention_wrapper/attention_layer/kernel": [7, 8],
    "decoder/attention_wrapper/gru_cell/gates/kernel": [14, 8],
    "decoder/attention_wrapper/gru_cell/gates/bias": [8],
    "decoder/attention_wrapper/gru_cell/candidate/kernel": [14, 4],
    "decoder/attention_wrapper/gru_cell/candidate/bias": [4],
}


def test_training_with_attention() -> None:
    seq2seq = contrib.seq2seq
    random = np.random.RandomState(1)
    memory, inputs = random.randn(2, 5, 3).astype(np.float32), random.randn(2, 4, 2).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        mechanism = seq2seq.BahdanauAttention(6, tf.constant(memory), [5, 2])
        cell = seq2seq.AttentionWrapper(
            contrib.rnn.GRUCell(4), mechanism, attention_layer_size=8, alignment_history=True
        )
        start = tf.constant(random.randn(2, 4), tf.float32)
        state = cell.zero_state(2, tf.float32).clone(cell_state=start)
        helper = seq2seq.TrainingHelper(tf.constant(inputs), [4, 3])
        outputs, last, _ = seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, helper, state))
        history = last.alignment_history.stack()
        variables = v1.trainable_variables()
        gradients = tf.gradients(tf.reduce_sum(outputs.rnn_output**2), variables)
        assert {one.op.name: one.shape.as_list() for one in variables} == NAMES
        session.run(v1.global_variables_initializer())
        outputs, history, last_attention, gradients, h, values = session.run(
            [outputs.rnn_output, history, last.attention, gradients, start, variables]
        )
    value = {one.op.name.rpartition("attention_wrapper/")[2]: x for one, x in zip(variables, values, strict=True)}
    masked = memory * (np.arange(5) < np.array([5, 2])[:, None])[..., None]
    attention = np.zeros([2, 8])
    for step in range(4):
        x = np.concatenate([inputs[:, step], attention], 1)
        gates = np.concatenate([x, h], 1) @ value["gru_cell/gates/kernel"] + value["gru_cell/gates/bias"]
        r, u = np.split(1 / (1 + np.exp(-gates)), 2, 1)
        joined = np.concatenate([x, r * h], 1)
        h = u * h + (1 - u) * np.tanh(joined @ value["gru_cell/candidate/kernel"] + value["gru_cell/candidate/bias"])
        hidden = masked @ value["memory_layer/kernel"] + (h @ value["bahdanau_attention/query_layer/kernel"])[:, None]
        score = (value["bahdanau_attention/attention_v"] * np.tanh(hidden)).sum(-1)
        weights = np.exp(score) * (np.arange(5) < np.array([5, 2])[:, None])
        weights /= weights.sum(1, keepdims=True)
        context = np.einsum("bt,btd->bd", weights, masked)
        attention = np.concatenate([h, context], 1) @ value["attention_layer/kernel"]
        np.testing.assert_allclose(outputs[:, step], attention, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(history[step], weights, rtol=1e-4, atol=1e-6)
    assert last_attention.shape == (2, 8)
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)


def test_several_mechanisms_and_the_output_of_the_cell() -> None:
    seq2seq = contrib.seq2seq

    class Uniform(seq2seq.LuongAttention):
        """As they were written for TensorFlow 1.4: it returns the alignments alone."""

        def __call__(self, query, previous_alignments):
            return tf.fill(tf.shape(previous_alignments), 0.2)

    memory = np.random.RandomState(1).randn(2, 5, 3).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        mechanisms = [Uniform(4, memory), seq2seq.LuongAttention(4, memory)]
        cell = seq2seq.AttentionWrapper(
            contrib.rnn.BasicLSTMCell(4),
            mechanisms,
            output_attention=False,
            cell_input_fn=lambda inputs, attention: inputs,
            initial_cell_state=v1.nn.rnn_cell.LSTMStateTuple(tf.ones([2, 4]), tf.ones([2, 4])),
        )
        output, state = cell(tf.ones([2, 3]), cell.zero_state(2, tf.float32))
        assert (cell.output_size, cell.state_size.attention) == (4, 6)
        session.run(v1.global_variables_initializer())
        output, state = session.run([output, state])
        with pytest.raises(ValueError, match="attention_layer_size needs one value per mechanism, got 1 for 2"):
            seq2seq.AttentionWrapper(contrib.rnn.GRUCell(4), mechanisms, attention_layer_size=3)
        with pytest.raises(TypeError, match="must be an AttentionMechanism"):
            seq2seq.AttentionWrapper(contrib.rnn.GRUCell(4), 3)
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="tile_batch"):
            cell.zero_state(6, tf.float32)
    np.testing.assert_allclose(output, state.cell_state.h)
    np.testing.assert_allclose(state.attention[:, :3], memory.mean(1), rtol=1e-5)
    assert len(state.alignments) == 2 and int(state.time) == 1
