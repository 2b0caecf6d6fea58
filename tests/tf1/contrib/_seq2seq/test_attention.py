"""Attention mechanisms, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

RANDOM = np.random.RandomState(6)
MEMORY = RANDOM.randn(2, 4, 3).astype(np.float32)
QUERY = RANDOM.randn(2, 5).astype(np.float32)
LENGTHS = [4, 2]


def softmax(score: np.ndarray) -> np.ndarray:
    score = np.where(np.arange(4) < np.array(LENGTHS)[:, None], score, -np.inf)
    weights = np.exp(score - score.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def align(mechanism, session):
    """Alignments of the query, and the variables, with random values."""
    alignments, state = mechanism(tf.constant(QUERY), mechanism.initial_state(2, tf.float32))
    session.run(v1.global_variables_initializer())
    values = {}
    for one in v1.global_variables():
        values[one.op.name] = RANDOM.uniform(0.2, 1, one.shape.as_list()).astype(np.float32)
        one.load(values[one.op.name], session)
    found, next_state = session.run([alignments, state])
    np.testing.assert_array_equal(found, next_state)
    return found, values


@pytest.mark.parametrize("scaled", [False, True])
def test_luong_and_bahdanau(scaled: bool) -> None:
    seq2seq = contrib.seq2seq
    memory = np.where((np.arange(4) < np.array(LENGTHS)[:, None])[..., None], MEMORY, 0)
    with tf.Graph().as_default(), v1.Session() as session:
        found, value = align(seq2seq.LuongAttention(5, tf.constant(MEMORY), LENGTHS, scale=scaled), session)
    score = np.einsum("bd,btd->bt", QUERY, memory @ value["memory_layer/kernel"])
    np.testing.assert_allclose(found, softmax(score * value.get("luong_attention/attention_g", 1)), rtol=1e-4)
    assert ("luong_attention/attention_g" in value) == scaled

    with tf.Graph().as_default(), v1.Session() as session:
        mechanism = seq2seq.BahdanauAttention(6, tf.constant(MEMORY), LENGTHS, normalize=scaled)
        found, value = align(mechanism, session)
    hidden = memory @ value["memory_layer/kernel"] + (QUERY @ value["bahdanau_attention/query_layer/kernel"])[:, None]
    v = value["bahdanau_attention/attention_v"]
    if scaled:
        v = value["bahdanau_attention/attention_g"] * v / np.sqrt((v**2).sum())
        hidden += value["bahdanau_attention/attention_b"]
    np.testing.assert_allclose(found, softmax((v * np.tanh(hidden)).sum(-1)), rtol=1e-4)


def test_other_probabilities_and_wrong_sizes() -> None:
    seq2seq = contrib.seq2seq
    with tf.Graph().as_default(), v1.Session() as session:
        found, _ = align(seq2seq.BahdanauAttention(6, MEMORY, LENGTHS, probability_fn=seq2seq.hardmax), session)
        np.testing.assert_array_equal(found.sum(1), 1)
        assert set(found.ravel()) == {0, 1}
        with pytest.raises(ValueError, match="num_units must be the size of the query, 5: the keys have the size 4"):
            align(seq2seq.LuongAttention(4, MEMORY, LENGTHS), session)
        with pytest.raises(ValueError, match=r"static sizes after \[batch, time\], got the shape \(2, 4, (None|\?)\)"):
            seq2seq.LuongAttention(4, v1.placeholder(tf.float32, [2, 4, None]))
