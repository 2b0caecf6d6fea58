"""SciPy's optimizers on a session."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

pytest.importorskip("scipy")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 0, 0]),
        ({"bounds": True}, [1, 2, 0]),
        ({"constraints": True, "method": "SLSQP"}, [1, 1, 0]),
    ],
)
def test_the_minimum_of_a_norm(options: dict, expected: list[float]) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        vector, scalar = v1.get_variable("v", initializer=[7.0, 7.0]), v1.get_variable("s", initializer=3.0)
        shift = v1.placeholder(tf.float32, [])
        loss = tf.reduce_sum(tf.square(vector)) + tf.square(scalar - shift)
        arguments = {key: value for key, value in options.items() if key == "method"}
        if "bounds" in options:
            arguments["var_to_bounds"] = {vector: ([1, 2], np.inf)}
        if "constraints" in options:
            arguments |= {"equalities": [vector[1] - 1], "inequalities": [vector[0] - 1]}
        optimizer = contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 100}, **arguments)
        session.run(v1.global_variables_initializer())
        steps, losses = [], []
        optimizer.minimize(
            session, feed_dict={shift: 0.0}, fetches=[loss], step_callback=steps.append, loss_callback=losses.append
        )
        found = [*session.run(vector), session.run(scalar)]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert steps[-1].shape == (3,) and losses[0] == 107 and losses[-1] < 10


def test_own_optimizers_and_wrong_arguments() -> None:
    class Halving(contrib.opt.ExternalOptimizerInterface):
        def _minimize(self, initial_val, loss_grad_func, **others):
            loss, gradient = loss_grad_func(initial_val)
            assert (loss, gradient.tolist()) == (16, [8])
            return initial_val / 2

    with tf.Graph().as_default(), v1.Session() as session:
        var = v1.get_variable("v", initializer=4.0)
        optimizer = Halving(tf.square(var))
        session.run(v1.global_variables_initializer())
        optimizer.minimize(session)
        assert session.run(var) == 2
        with pytest.raises(ValueError, match="bounds cannot be passed: bounds are var_to_bounds"):
            contrib.opt.ScipyOptimizerInterface(tf.square(var), bounds=[]).minimize(session)
