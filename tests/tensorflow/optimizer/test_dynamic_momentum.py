"""DyMomentumOptimizer against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from dynamic_updates import MAX, MIN, check_twenty_steps, momentum_at, rate
from updates import GRADIENTS, STEPS

from moxing.tensorflow.optimizer.dynamic_momentum import DyMomentumOptimizer


@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("lars", [False, True])
@pytest.mark.parametrize("nesterov", [False, True])
def test_twenty_steps_equal_numpy(nesterov, lars, decay):
    check_twenty_steps(DyMomentumOptimizer, False, nesterov, lars, decay)


def test_momentum_goes_against_the_rate():
    with tf.Graph().as_default(), tf.Session() as session:
        optimizer = DyMomentumOptimizer(rate, MAX, MIN, max_iteration=STEPS, cooldown=0.25)
        step = tf.train.get_global_step()
        session.run(tf.global_variables_initializer())
        seen = []
        for number in range(STEPS):
            session.run(step.assign(number).op)
            seen.append(session.run(optimizer.get_momentum()))
    np.testing.assert_allclose(seen, [momentum_at(number) for number in range(STEPS)], rtol=1e-6)
    assert min(seen) == np.float32(0.85) and len(GRADIENTS) == STEPS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_lr": 0.1, "min_lr": 0.2}, r"DyMomentum\(max_lr=0.1\): expected at least min_lr=0.2"),
        ({"max_mom": 1.0}, r"\(max_mom=1.0\): expected a number from 0 to below 1"),
        ({"cooldown": 1.0}, r"\(cooldown=1.0\)"),
        ({"weight_decay": -1.0}, r"\(weight_decay=-1.0\)"),
        ({"max_iteration": 0}, r"\(max_iteration=0\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        DyMomentumOptimizer(0.1, **{"max_lr": 1.0, "min_lr": 0.0, **arguments})
