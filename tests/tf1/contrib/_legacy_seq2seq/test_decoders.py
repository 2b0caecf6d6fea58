"""Decoders over lists of tensors, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1
BATCH, UNITS, SYMBOLS, SIZE = 2, 3, 5, 4


def variables_by_name(session) -> dict[str, np.ndarray]:
    return dict(zip([one.op.name for one in v1.global_variables()], session.run(v1.global_variables()), strict=True))


def test_attention_is_that_of_the_paper() -> None:
    random = np.random.RandomState(1)
    inputs = random.randn(2, BATCH, SIZE).astype(np.float32)
    memory = random.randn(BATCH, 6, UNITS).astype(np.float32)
    state = random.randn(BATCH, UNITS).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        outputs, last = contrib.legacy_seq2seq.attention_decoder(
            list(map(tf.constant, inputs)),
            tf.constant(state),
            tf.constant(memory),
            contrib.rnn.BasicRNNCell(UNITS),
            output_size=7,
            num_heads=2,
        )
        session.run(v1.global_variables_initializer())
        found, found_state, variables = *session.run([outputs, last]), variables_by_name(session)
    value = {name.removeprefix("attention_decoder/"): value for name, value in variables.items()}

    def affine(scope: str, *args: np.ndarray) -> np.ndarray:
        return np.concatenate(args, 1) @ value[f"{scope}kernel"] + value[f"{scope}bias"]

    attention = [np.zeros([BATCH, UNITS])] * 2
    for step in range(2):
        state = np.tanh(affine("basic_rnn_cell/", affine("", inputs[step], *attention), state))
        attention = []
        for head in range(2):
            hidden = memory @ value[f"AttnW_{head}"][0, 0] + affine(f"Attention_{head}/", state)[:, None]
            weights = np.exp((value[f"AttnV_{head}"] * np.tanh(hidden)).sum(2))
            attention.append(((weights / weights.sum(1, keepdims=True))[..., None] * memory).sum(1))
        np.testing.assert_allclose(
            found[step], affine("AttnOutputProjection/", state, *attention), rtol=1e-4, atol=1e-6
        )
    np.testing.assert_allclose(found_state, state, rtol=1e-4)


def test_feeding_back_by_a_flag_and_by_a_tensor() -> None:
    legacy = contrib.legacy_seq2seq
    with tf.Graph().as_default(), v1.Session() as session:
        given = [tf.constant([1, 4]), tf.constant([3, 3]), tf.constant([0, 2])]
        flag = v1.placeholder(tf.bool, [])
        cell = contrib.rnn.OutputProjectionWrapper(contrib.rnn.GRUCell(UNITS), SYMBOLS)

        def decode(feed_previous, reuse):
            with v1.variable_scope("decode", reuse=reuse):
                return legacy.embedding_rnn_decoder(
                    given, tf.zeros([BATCH, UNITS]), cell, SYMBOLS, SIZE, feed_previous=feed_previous
                )[0]

        plain, greedy, by_tensor = decode(False, None), decode(True, True), decode(flag, True)
        chosen = [tf.argmax(one, axis=1) for one in greedy]
        given[1:] = chosen[:2]
        replayed = decode(False, True)
        session.run(v1.global_variables_initializer())
        plain, greedy, replayed = session.run([plain, greedy, replayed])
        np.testing.assert_allclose(greedy, replayed, rtol=1e-6)
        np.testing.assert_allclose(session.run(by_tensor, {flag: True}), greedy, rtol=1e-6)
        np.testing.assert_allclose(session.run(by_tensor, {flag: False}), plain, rtol=1e-6)
        assert np.abs(np.array(plain) - greedy).max() > 1e-4
        names = {variable.op.name for variable in v1.trainable_variables()}
    assert names >= {
        "decode/embedding_rnn_decoder/embedding",
        "decode/embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/kernel",
        "decode/embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/gru_cell/gates/kernel",
    }


def test_wrong_arguments_are_named() -> None:
    legacy = contrib.legacy_seq2seq
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="decoder_inputs must have at least one step"):
            legacy.attention_decoder([], None, None, None)
        with pytest.raises(ValueError, match=r"the biases must have the shape \[5\], got \(4,\)"):
            legacy.embedding_rnn_decoder([], None, None, 5, 2, output_projection=(tf.zeros([3, 5]), tf.zeros([4])))
