"""Monotonic attention, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.session_runs import run
from moxing.tf1 import contrib

v1 = tf.compat.v1


def test_all_modes_are_the_distribution_of_the_walk() -> None:
    """From each position of the step before, the walk stops at j with probability p[j], else goes on."""
    random = np.random.RandomState(2)
    p, before = random.uniform(0.05, 0.95, (3, 5)), random.uniform(0, 1, (3, 5))
    before /= before.sum(1, keepdims=True)
    expected = np.zeros_like(p)
    for row in range(3):
        for start in range(5):
            reach = before[row, start]
            for position in range(start, 5):
                expected[row, position] += reach * p[row, position]
                reach *= 1 - p[row, position]
    hard_p, hard_before = np.array([[1.0, 0, 0, 1, 1]]), np.array([[0.0, 1, 0, 0, 0]])
    attention = contrib.seq2seq.monotonic_attention
    with tf.Graph().as_default():
        recursive, parallel, hard, product = run(
            attention(p, before, "recursive"),
            attention(p, before, "parallel"),
            attention(hard_p, hard_before, "hard"),
            contrib.seq2seq.safe_cumprod(p, axis=1, exclusive=True),
        )
        with pytest.raises(ValueError, match="'recursive', 'parallel' or 'hard', got 'soft'"):
            attention(p, before, "soft")
    np.testing.assert_allclose(recursive, expected, rtol=1e-6)
    np.testing.assert_allclose(parallel, expected, rtol=1e-6)
    assert hard.tolist() == [[0, 0, 0, 1, 0]]
    np.testing.assert_allclose(product, np.cumprod(np.insert(p, 0, 1, axis=1), axis=1)[:, :-1], rtol=1e-6)


@pytest.mark.parametrize("kind", ["Luong", "Bahdanau"])
def test_mechanisms_start_at_the_first_position(kind: str) -> None:
    with tf.Graph().as_default():
        mechanism = getattr(contrib.seq2seq, f"{kind}MonotonicAttention")(
            3, tf.random.normal([2, 4, 3], seed=1), [4, 2], score_bias_init=-1.0
        )
        start = mechanism.initial_state(2, tf.float32)
        alignments, _ = mechanism(tf.ones([2, 3]), start)
        names = [one.op.name for one in v1.global_variables()]
        start, alignments = run(start, alignments)
    assert start.tolist() == [[1, 0, 0, 0]] * 2
    assert (alignments[1, 2:] == 0).all() and (alignments[0] > 0).all() and (alignments.sum(1) < 1).all()
    assert f"{kind.lower()}_monotonic_attention/attention_score_bias" in names
