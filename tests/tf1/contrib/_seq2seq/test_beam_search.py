"""Beam search, against the enumeration of all sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

SYMBOLS, END = 4, 0
#: The logits of the symbol after each symbol, for two rows of the batch.
LOGITS = np.random.RandomState(8).randn(2, SYMBOLS, SYMBOLS).astype(np.float32) * 2
LOG_PROBS = LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True))


class Markov(v1.nn.rnn_cell.RNNCell):
    """Its state is the number of the row, its output the logits after the symbol that it gets."""

    state_size = 1
    output_size = SYMBOLS

    def call(self, inputs, state):
        row = tf.cast(state[:, 0], tf.int32)
        symbol = tf.cast(inputs[:, 0], tf.int32)
        return tf.gather_nd(tf.constant(LOGITS), tf.stack([row, symbol], axis=1)), state


def best_sequences(row: int, steps: int, weight: float, count: int) -> list[tuple[float, list[int]]]:
    """All sequences of at most some symbols, those that end earlier with their end token.

    As in TensorFlow 1, the end token adds to the length from the step after it on.
    """
    found = []
    for length in range(steps + 1):
        for body in itertools.product(range(1, SYMBOLS), repeat=length):
            symbols = [*body, END] if length < steps else list(body)
            total = sum(LOG_PROBS[row, a, b] for a, b in itertools.pairwise([1, *symbols]))
            counted = len(symbols) if len(symbols) < steps else length
            found.append((total / ((5 + counted) / 6) ** weight, symbols))
    return sorted(found, reverse=True)[:count]


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_wide_beams_find_the_best_sequences(weight: float) -> None:
    """With as many beams as prefixes, nothing is lost."""
    seq2seq, beams, steps = contrib.seq2seq, 27, 3
    with tf.Graph().as_default(), v1.Session() as session:
        rows = v1.placeholder_with_default(np.array([[0.0], [1.0]], np.float32), [None, 1])
        decoder = seq2seq.BeamSearchDecoder(
            Markov(),
            lambda ids: tf.cast(ids, tf.float32)[..., None],
            tf.fill([tf.shape(rows)[0]], 1),
            END,
            seq2seq.tile_batch(rows, beams),
            beams,
            length_penalty_weight=weight,
        )
        outputs, state, _ = session.run(seq2seq.dynamic_decode(decoder, maximum_iterations=steps))
    assert outputs.predicted_ids.shape == (2, steps, beams)
    for row in range(2):
        for beam, (score, symbols) in enumerate(best_sequences(row, steps, weight, 5)):
            found = outputs.predicted_ids[row, :, beam].tolist()
            assert found == symbols + [END] * (steps - len(symbols))
            np.testing.assert_allclose(outputs.beam_search_decoder_output.scores[row, -1, beam], score, rtol=1e-5)
    assert state.lengths.shape == (2, beams)


def test_one_beam_is_greedy_with_attention_and_a_layer() -> None:
    seq2seq = contrib.seq2seq
    random = np.random.RandomState(1)
    memory = random.randn(2, 5, 3).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(2)
        table = v1.get_variable("embedding", [6, 3], initializer=v1.random_normal_initializer())
        layer = v1.layers.Dense(6, use_bias=False, kernel_initializer=v1.random_normal_initializer(stddev=3.0))
        results = []
        for width in (0, 1, 3):
            with v1.variable_scope("model", reuse=bool(width)):
                keys = seq2seq.tile_batch(tf.constant(memory), width or 1)
                cell = seq2seq.AttentionWrapper(
                    contrib.rnn.BasicLSTMCell(4, name="cell", reuse=bool(width) or None),
                    seq2seq.LuongAttention(4, keys, seq2seq.tile_batch(tf.constant([5, 3]), width or 1)),
                    attention_layer_size=4,
                    alignment_history=True,
                    name="wrapper",
                )
                state = cell.zero_state(2 * (width or 1), tf.float32)
                if width:
                    decoder = seq2seq.BeamSearchDecoder(cell, table, [1, 2], 0, state, width, layer)
                else:
                    helper = seq2seq.GreedyEmbeddingHelper(table, [1, 2], 0)
                    decoder = seq2seq.BasicDecoder(cell, helper, state, layer)
                outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=6, scope="decoder")
                results.append(outputs.predicted_ids if width else outputs.sample_id)
        history = state.cell_state.alignment_history
        names = [one.op.name for one in v1.trainable_variables()]
        session.run(v1.global_variables_initializer())
        greedy, single, three, history = session.run([*results, history])
    assert "model/decoder/wrapper/attention_layer/kernel" in names and len(names) == len(set(names)) == 6
    ended = np.cumsum(greedy == 0, axis=1) - (greedy == 0) > 0
    np.testing.assert_array_equal(single[:, : greedy.shape[1], 0], np.where(ended, 0, greedy)[:, : single.shape[1]])
    assert three.shape[2] == 3 and history.shape[1:] == (2, 3, 5)
