"""Losses of lists of tensors, and buckets."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.session_runs import run
from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1


def test_losses_are_weighted_cross_entropies() -> None:
    legacy = contrib.legacy_seq2seq
    random = np.random.RandomState(3)
    logits, targets = random.randn(3, 2, 5).astype(np.float32), random.randint(5, size=(3, 2))
    weights = np.array([[1, 1], [0.5, 1], [0, 0]], np.float32)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    entropies = -np.take_along_axis(log_probs, targets[..., None], -1)[..., 0] * weights
    with tf.Graph().as_default():
        lists = [list(map(tf.constant, values)) for values in (logits, targets, weights)]
        by_example, summed, mean, total, own = run(
            legacy.sequence_loss_by_example(*lists),
            legacy.sequence_loss_by_example(*lists, average_across_timesteps=False),
            legacy.sequence_loss(*lists),
            legacy.sequence_loss(*lists, average_across_batch=False),
            legacy.sequence_loss(*lists, softmax_loss_function=lambda labels, logits: tf.ones([2])),
        )
    np.testing.assert_allclose(by_example, entropies.sum(0) / weights.sum(0), rtol=1e-5)
    np.testing.assert_allclose(summed, entropies.sum(0), rtol=1e-5)
    np.testing.assert_allclose([mean, total, own], [by_example.mean(), by_example.sum(), 1], rtol=1e-5)
    with pytest.raises(ValueError, match="same number of steps, got 1, 2 and 1"):
        legacy.sequence_loss_by_example([1], [1, 2], [1])


def test_buckets_share_their_variables() -> None:
    """A prefix of a sequence gives the same outputs in a small bucket and in the large one."""
    legacy, rnn = contrib.legacy_seq2seq, contrib.rnn
    with tf.Graph().as_default():
        ids = [tf.constant([step % 3, 1]) for step in range(4)]
        weights = [tf.ones([2])] * 4
        cell = rnn.MultiRNNCell([rnn.DropoutWrapper(rnn.GRUCell(4)), rnn.GRUCell(4)])
        outputs, losses = legacy.model_with_buckets(
            ids,
            ids,
            ids,
            weights,
            [(2, 2), (2, 3)],
            lambda x, y: legacy.embedding_attention_seq2seq(x, y, cell, 3, 3, 5),
            per_example_loss=True,
        )
        names = [variable.op.name for variable in v1.trainable_variables()]
        small, large, losses = run(outputs[0], outputs[1], losses)
    assert [len(small), len(large), losses[0].shape] == [2, 3, (2,)]
    np.testing.assert_allclose(small, large[:2], rtol=1e-5)
    # Two cells of four variables on either side.
    assert len([name for name in names if "gru_cell" in name]) == 16
    assert len(names) == len(set(names))
    with pytest.raises(ValueError, match="targets must have at least the 3 steps of the last bucket, got 1"):
        legacy.model_with_buckets([1] * 2, [], [1], [1], [(2, 3)], None)
