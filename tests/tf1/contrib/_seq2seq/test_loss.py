"""The loss of sequences in one tensor."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.session_runs import run
from moxing.tf1 import contrib


def test_averages_over_time_and_batch() -> None:
    loss = contrib.seq2seq.sequence_loss
    random = np.random.RandomState(3)
    logits, targets = random.randn(2, 3, 5).astype(np.float32), random.randint(5, size=(2, 3))
    weights = np.array([[1, 0.5, 0], [1, 1, 0]], np.float32)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    entropies = -np.take_along_axis(log_probs, targets[..., None], -1)[..., 0] * weights
    with tf.Graph().as_default():
        mean, by_row, by_time, plain, own = run(
            loss(logits, targets, weights),
            loss(logits, targets, weights, average_across_batch=False),
            loss(logits, targets, weights, average_across_timesteps=False),
            loss(logits, targets, weights, False, False),
            loss(logits, targets, weights, softmax_loss_function=lambda labels, logits: tf.fill([6], 2.0)),
        )
        with pytest.raises(ValueError, match=r"logits must have 3 dimensions, got the shape \(2, 5\)"):
            loss(logits[:, 0], targets, weights)
    np.testing.assert_allclose(mean, entropies.sum() / weights.sum(), rtol=1e-5)
    np.testing.assert_allclose(by_row, entropies.sum(1) / weights.sum(1), rtol=1e-5)
    # No row has a weight in the last step: its loss is 0, not NaN.
    np.testing.assert_allclose(by_time, entropies.sum(0) / np.maximum(weights.sum(0), 1e-12), rtol=1e-5)
    np.testing.assert_allclose(plain, entropies, rtol=1e-5)
    np.testing.assert_allclose(own, 2)
