"""Linear-chain CRFs, compared with the enumeration of all tag sequences."""

from __future__ import annotations

import itertools

import numpy as np

from helpers.session_runs import run
from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1

TAGS = 3
LENGTHS = [4, 1, 2, 3]
RANDOM = np.random.RandomState(7)
SCORES = RANDOM.randn(4, 4, TAGS).astype(np.float32)
TRANSITIONS = RANDOM.randn(TAGS, TAGS).astype(np.float32)
GOLD = RANDOM.randint(TAGS, size=(4, 4))
ALLOWED = RANDOM.rand(4, 4, TAGS) < 0.6
ALLOWED[..., 0] = True


def score_of(row: int, tags: tuple[int, ...]) -> float:
    unary = sum(SCORES[row, t, tag] for t, tag in enumerate(tags))
    return unary + sum(TRANSITIONS[pair] for pair in itertools.pairwise(tags))


def all_scores(row: int) -> dict[tuple[int, ...], float]:
    return {tags: score_of(row, tags) for tags in itertools.product(range(TAGS), repeat=LENGTHS[row])}


def log_sum_exp(values) -> float:
    return float(np.log(np.sum(np.exp(list(values)))))


def test_scores_and_decoding_are_those_of_the_enumeration() -> None:
    crf = contrib.crf
    with tf.Graph().as_default():
        scores = v1.placeholder_with_default(SCORES, [None, None, TAGS])
        transitions = tf.constant(TRANSITIONS)
        bitmap = ALLOWED & (np.arange(4) < np.array(LENGTHS)[:, None])[..., None]
        multitag = crf.crf_multitag_sequence_score(scores, bitmap, LENGTHS, transitions)
        gold, log_norm, multi, (likelihood, _), (tags, best), gradients = run(
            crf.crf_sequence_score(scores, GOLD, LENGTHS, transitions),
            crf.crf_log_norm(scores, LENGTHS, transitions),
            multitag,
            crf.crf_log_likelihood(scores, GOLD, tf.constant(LENGTHS, tf.int64), transitions),
            crf.crf_decode(scores, transitions, LENGTHS),
            tf.gradients(multitag, [scores, transitions]),
        )
    for row, length in enumerate(LENGTHS):
        every = all_scores(row)
        np.testing.assert_allclose(gold[row], score_of(row, tuple(GOLD[row, :length])), rtol=1e-5)
        np.testing.assert_allclose(log_norm[row], log_sum_exp(every.values()), rtol=1e-5)
        allowed = [s for tags_, s in every.items() if all(ALLOWED[row, t, tag] for t, tag in enumerate(tags_))]
        np.testing.assert_allclose(multi[row], log_sum_exp(allowed), rtol=1e-5)
        winner = max(every, key=lambda key: every[key])
        np.testing.assert_allclose(best[row], every[winner], rtol=1e-5)
        assert tags[row].tolist() == [*winner, *[0] * (4 - length)]
        in_numpy, value = crf.viterbi_decode(SCORES[row, :length], TRANSITIONS)
        assert tuple(in_numpy) == winner
        np.testing.assert_allclose(value, every[winner], rtol=1e-5)
    np.testing.assert_allclose(likelihood, gold - log_norm, rtol=1e-4)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_one_position_empty_sequences_and_the_variable() -> None:
    crf = contrib.crf
    with tf.Graph().as_default():
        first = v1.placeholder_with_default(SCORES[:, :1], [None, None, TAGS])
        with v1.variable_scope("crf"):
            likelihood, transitions = crf.crf_log_likelihood(first, GOLD[:, :1], [1, 1, 0, 1])
        decoded = crf.crf_decode(first, transitions, [1, 1, 1, 1])
        gradient = tf.gradients(likelihood, first)[0]
        assert [variable.op.name for variable in v1.trainable_variables()] == ["crf/transitions"]
        likelihood, (tags, best), gradient = run(likelihood, decoded, gradient)
    logits = SCORES[:, 0]
    expected = logits[np.arange(4), GOLD[:, 0]] - [log_sum_exp(row) for row in logits]
    expected[2] = 0
    np.testing.assert_allclose(likelihood, expected, rtol=1e-5)
    assert tags[:, 0].tolist() == logits.argmax(1).tolist()
    np.testing.assert_allclose(best, logits.max(1))
    assert np.isfinite(gradient).all() and not gradient[2].any()


def test_training_finds_the_transitions() -> None:
    """Tags that alternate cannot be told from constant scores, only from the tag before."""
    crf = contrib.crf
    tags = np.array([[0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])
    with tf.Graph().as_default(), v1.Session() as session:
        likelihood, transitions = crf.crf_log_likelihood(tf.zeros([2, 5, 2]), tags, [5, 5])
        step = v1.train.GradientDescentOptimizer(0.5).minimize(-tf.reduce_mean(likelihood))
        session.run(v1.global_variables_initializer())
        for _ in range(20):
            session.run(step)
        learned, last = session.run([transitions, likelihood])
    assert (learned[[0, 1], [1, 0]] > learned[[0, 1], [0, 1]] + 2).all()
    np.testing.assert_allclose(last, np.log(0.5), atol=0.3)
