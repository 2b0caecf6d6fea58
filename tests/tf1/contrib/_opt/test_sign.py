"""AddSign, PowerSign and the decays of the sign, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.session_runs import run
from moxing.tf1 import contrib

v1 = tf.compat.v1
GRADIENTS = np.array([[1.0, -2.0], [-0.5, -1.0], [3.0, 0.0]], np.float32)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["add", "power"])
def test_steps_are_those_of_the_paper(kind: str, sparse: bool) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        var = v1.get_variable("w", initializer=np.zeros([2], np.float32))
        grad, step = v1.placeholder(tf.float32, [2]), v1.train.get_or_create_global_step()
        decay = contrib.opt.get_linear_decay_fn(4)
        if kind == "add":
            optimizer = contrib.opt.AddSignOptimizer(0.1, alpha=2.0, sign_decay_fn=decay)
        else:
            optimizer = contrib.opt.PowerSignOptimizer(0.1, base=3.0, sign_decay_fn=decay)
        given = tf.IndexedSlices(grad, tf.constant([0, 1]), tf.constant([2])) if sparse else grad
        train = optimizer.apply_gradients([(given, var)], global_step=step)
        session.run(v1.global_variables_initializer())
        expected, m = np.zeros(2), np.zeros(2)
        for number, g in enumerate(GRADIENTS):
            m = 0.9 * m + 0.1 * g
            agreement = (1 - number / 4) * np.sign(g) * np.sign(m)
            expected -= 0.1 * (2 + agreement if kind == "add" else 3.0**agreement) * g
            session.run(train, {grad: g})
            np.testing.assert_allclose(session.run(var), expected, rtol=1e-5)
        with pytest.raises(ValueError, match="sign_decay_fn needs global_step"):
            optimizer.apply_gradients([(grad, var)])


def test_decays_of_the_sign() -> None:
    opt = contrib.opt
    with tf.Graph().as_default():
        steps = np.array([0, 5, 10, 20])
        linear, cosine, cut, restart = run(
            opt.get_linear_decay_fn(10)(steps),
            opt.get_cosine_decay_fn(10)(steps),
            opt.get_cosine_decay_fn(10, num_periods=2, zero_after=1)(steps),
            opt.get_restart_decay_fn(10, num_periods=4)(np.array([0, 1, 2.5, 6.25])),
        )
    np.testing.assert_allclose(linear, [1, 0.5, 0, 0])
    np.testing.assert_allclose(cosine, [1, 0.5, 0, 0], atol=1e-6)
    np.testing.assert_allclose(cut, [1, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(restart, [1, 0.5 + 0.5 * np.cos(0.4 * np.pi), 1, 0.5], atol=1e-5)
