"""tf.contrib.nn and sparsemax, compared with NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib.more import nn


def projected(row):
    """The projection of a row onto the simplex, by bisection of its threshold."""
    low, high = row.min() - 1, row.max()
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(row - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(row - low, 0)


def test_sparsemax_and_the_functions_of_nn():
    z = np.random.RandomState(0).randn(5, 4) * 2
    labels = np.eye(4)[[0, 1, 2, 3, 0]]
    expected = np.array([projected(row) for row in z])
    with tf.Graph().as_default(), tf.Session() as session:
        made = nn.sparsemax(z)
        loss = nn.sparsemax_loss(z, made, labels)
        (slope,) = tf.gradients(nn.sparsemax_loss(x := tf.constant(z), nn.sparsemax(x), labels), x)
        np.testing.assert_allclose(session.run(made), expected, atol=1e-6)
        # The gradient of the loss is the difference to the labels.
        np.testing.assert_allclose(session.run(slope), expected - labels, atol=1e-6)
        assert (session.run(loss) >= 0).all()
        np.testing.assert_allclose(
            session.run(nn.scaled_softplus(z, 2.0, 1.5)), np.minimum(2 * np.log1p(np.exp(z / 2)), 1.5)
        )
        assert session.run(nn.nth_element(z, 1)).tolist() == np.sort(z)[:, 1].tolist()
        flipped = [
            nn.deprecated_flipped_softmax_cross_entropy_with_logits(z, labels),
            nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(z, labels.argmax(1)),
            nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(z, labels),
        ]
        dense, sparse, sigmoid = session.run(flipped)
        np.testing.assert_allclose(dense, sparse)
        np.testing.assert_allclose(sigmoid, np.log1p(np.exp(z)) - z * labels, rtol=1e-6)


def test_alpha_dropout_keeps_mean_and_variance():
    x = np.random.RandomState(0).randn(200_000).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        dropped = session.run(nn.alpha_dropout(x, 0.7, seed=1))
        assert abs(dropped.mean()) < 0.02 and abs(dropped.var() - 1) < 0.03
        values, counts = np.unique(dropped, return_counts=True)
        assert abs(counts.max() / len(x) - 0.3) < 0.01
        np.testing.assert_array_equal(session.run(nn.alpha_dropout(x, 1)), x)
    with pytest.raises(ValueError, match="keep_prob must be in"):
        nn.alpha_dropout(x, 0.0)
