"""LARS against NumPy."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from updates import (
    Trained,
    close,
    computed,
    lars,
    momentum,
    wrapped,
)


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_lars(decay):
    expected = computed(lars(0.02, decay, momentum()))
    fn = wrapped("lars", ratio=0.02, weight_decay=decay)
    close(Trained(fn).run(), expected)
    close(Trained(fn, partitions=2).run(), expected)
    close(Trained(fn, sparse=["rows"]).run(), expected)


def test_lars_where_norms_are_zero():
    with tf.Graph().as_default(), tf.Session() as session:
        zero = tf.get_variable("zero", [2, 1], initializer=tf.zeros_initializer(), use_resource=True)
        still = tf.get_variable("still", [2, 1], initializer=tf.ones_initializer(), use_resource=True)
        optimizer = wrapped("lars", tf.train.GradientDescentOptimizer(1.0), ratio=0.5)()
        train = optimizer.apply_gradients([(tf.constant([[1.0], [-2.0]]), zero), (tf.zeros([2, 1]), still)])
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([zero, still])[0].tolist() == [[-1], [2]]
        assert session.run(still).tolist() == [[1], [1]]
