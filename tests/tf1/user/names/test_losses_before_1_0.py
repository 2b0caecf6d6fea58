"""Losses of `tf.nn` with arguments that have no names."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.user import facade


def test_without_names_the_logits_come_first():
    nn = facade.module("tensorflow").nn
    logits, labels = np.array([[2.0, -1.0]]), np.array([[0.0, 1.0]])
    softmax = -np.log(np.exp(-1.0) / (np.exp(2.0) + np.exp(-1.0)))
    sigmoid = np.log1p(np.exp(logits)) - logits * labels
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.constant(logits), tf.constant(labels)
        found = [
            nn.softmax_cross_entropy_with_logits(x, y),
            nn.softmax_cross_entropy_with_logits(labels=y, logits=x),
            nn.sparse_softmax_cross_entropy_with_logits(x, tf.constant([1])),
            nn.sigmoid_cross_entropy_with_logits(x, y),
        ]
        *three, last = session.run(found)
    np.testing.assert_allclose(three, [[softmax]] * 3)
    np.testing.assert_allclose(last, sigmoid)
    assert nn.relu is tf.nn.relu
    with pytest.raises(TypeError, match="other arguments by name"):
        nn.sigmoid_cross_entropy_with_logits(x, y, "name")
