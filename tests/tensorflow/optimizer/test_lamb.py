"""LAMB against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import (
    OURS,
    RATE,
    STEPS,
    Trained,
    close,
    computed,
    lamb,
)

from moxing.tensorflow.optimizer.factory import get_optimizer_fn


def test_lamb_with_norms_of_zero():
    with tf.Graph().as_default(), tf.Session() as session:
        zero = tf.get_variable("zero", [2], initializer=tf.zeros_initializer(), use_resource=True)
        still = tf.get_variable("still", [2], initializer=tf.ones_initializer(), use_resource=True)
        optimizer = get_optimizer_fn("lamb", 0.1, weight_decay=0.0)()
        train = optimizer.apply_gradients([(tf.constant([1.0, -1.0]), zero), (tf.zeros([2]), still)])
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(zero), [-0.1, 0.1], rtol=1e-4)
        assert session.run(still).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "update"),
    [
        ({"weight_decay": 0.05, **OURS}, lamb()),
        ({"weight_decay": 0.05, "exclude": ["net/bias$"], **OURS}, lamb(exclude=["bias"])),
    ],
)
def test_twenty_steps_equal_numpy(arguments, update):
    trained = Trained(get_optimizer_fn("lamb", RATE / 2, **arguments))
    close(trained.run(), computed(update))
    assert trained.session.run(trained.step) == STEPS
