"""Encoders with decoders over lists of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1

EMBEDDED = "embedding_rnn_seq2seq"
ATTENTIVE = "embedding_attention_seq2seq"
#: Variables of checkpoints of TensorFlow 1.12.
NAMES = {
    "basic_rnn_seq2seq/rnn/gru_cell/gates/kernel",
    "basic_rnn_seq2seq/rnn_decoder/gru_cell/gates/kernel",
    "combined_tied_rnn_seq2seq/tied_rnn_seq2seq/gru_cell/gates/kernel",
    f"{EMBEDDED}/rnn/embedding_wrapper/embedding",
    f"{EMBEDDED}/rnn/embedding_wrapper/gru_cell/candidate/bias",
    f"{EMBEDDED}/embedding_rnn_decoder/embedding",
    f"{EMBEDDED}/embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/kernel",
    "embedding_tied_rnn_seq2seq/embedding",
    "embedding_tied_rnn_seq2seq/combined_tied_rnn_seq2seq/tied_rnn_seq2seq/output_projection_wrapper/bias",
    f"{ATTENTIVE}/rnn/embedding_wrapper/embedding",
    f"{ATTENTIVE}/embedding_attention_decoder/embedding",
    f"{ATTENTIVE}/embedding_attention_decoder/attention_decoder/AttnW_0",
    f"{ATTENTIVE}/embedding_attention_decoder/attention_decoder/AttnV_0",
    f"{ATTENTIVE}/embedding_attention_decoder/attention_decoder/kernel",
    f"{ATTENTIVE}/embedding_attention_decoder/attention_decoder/Attention_0/kernel",
    f"{ATTENTIVE}/embedding_attention_decoder/attention_decoder/AttnOutputProjection/kernel",
    f"{ATTENTIVE}/embedding_attention_decoder/attention_decoder/output_projection_wrapper/gru_cell/gates/bias",
    "one2many_rnn_seq2seq/rnn/embedding_wrapper/embedding",
    "one2many_rnn_seq2seq/one2many_decoder_a/embedding_rnn_decoder/embedding",
    "one2many_rnn_seq2seq/one2many_decoder_b/embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/kernel",
}


def test_names_and_shapes_of_all_models() -> None:
    legacy, gru = contrib.legacy_seq2seq, contrib.rnn.GRUCell
    with tf.Graph().as_default():
        dense, ids = [tf.ones([2, 3])] * 2, [tf.constant([1, 2])] * 2
        results = {
            3: legacy.basic_rnn_seq2seq(dense, dense, gru(3)),
            4: legacy.tied_rnn_seq2seq(dense, dense, gru(4)),
            5: legacy.embedding_rnn_seq2seq(ids, ids, gru(3), 6, 5, 4),
            6: legacy.embedding_tied_rnn_seq2seq(ids, ids, gru(3), 8, 4, num_decoder_symbols=6, feed_previous=True),
            7: legacy.embedding_attention_seq2seq(ids, ids, gru(3), 6, 7, 4, initial_state_attention=True),
        }
        many, states = legacy.one2many_rnn_seq2seq(
            ids, {"a": ids, "b": ids}, gru(3), {"a": gru(3), "b": gru(3)}, 6, {"a": 8, "b": 9}, 4, feed_previous=True
        )
        results[8], results[9] = (many["a"], states["a"]), (many["b"], states["b"])
        names = {variable.op.name for variable in v1.trainable_variables()}
    assert NAMES - names == set()
    for size, (outputs, state) in results.items():
        assert [one.shape for one in outputs] == [(2, size)] * 2
        assert state.shape == (2, 4 if size == 4 else 3)
    with pytest.raises(ValueError, match=r"same keys, got \['a'\] and \['b'\]"):
        legacy.one2many_rnn_seq2seq(ids, {"b": ids}, None, {"a": None}, 1, {}, 1)


def test_a_model_learns_to_repeat_its_input() -> None:
    """The decoder sees the last symbol only, so that it must use the state of the encoder."""
    legacy = contrib.legacy_seq2seq
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        words = np.array([[1, 2, 3], [3, 1, 1], [2, 2, 1], [3, 2, 2]]).T
        start = [np.zeros(4, np.int64), *words[:-1]]
        with v1.variable_scope("model", initializer=v1.random_uniform_initializer(-0.3, 0.3, seed=1)):
            outputs, _ = legacy.embedding_rnn_seq2seq(
                list(map(tf.constant, words)), list(map(tf.constant, start)), contrib.rnn.BasicLSTMCell(8), 4, 4, 6
            )
        loss = legacy.sequence_loss(outputs, list(map(tf.constant, words)), [tf.ones([4])] * 3)
        step = v1.train.AdamOptimizer(0.1).minimize(loss)
        session.run(v1.global_variables_initializer())
        first = session.run(loss)
        for _ in range(30):
            session.run(step)
        assert session.run(loss) < 0.1 * first
