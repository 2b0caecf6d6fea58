"""DyMomentumOptimizer and DyMomentumWOptimizer against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import GRADIENTS, STEPS, Trained, close, computed

from moxing.tensorflow.optimizer.dynamic_momentum import DyMomentumOptimizer
from moxing.tensorflow.optimizer.dynamic_momentumw import DyMomentumWOptimizer

MAX, MIN = 0.25, 0.0625


def rate_at(step):
    """Up to step 5, then down."""
    return float(np.interp(step, [0, 5, STEPS], [MIN, MAX, 0.03125]))


def rate():
    steps = tf.constant([rate_at(step) for step in range(STEPS + 1)], tf.float32)
    return tf.gather(steps, tf.train.get_or_create_global_step())


def momentum_at(step, cooldown=0.25):
    if step >= (1 - cooldown) * STEPS:
        return 0.98
    return 0.98 - 0.13 * min(max((rate_at(step) - MIN) / (MAX - MIN), 0.0), 1.0)


def update(decay=0.0, decoupled=False, nesterov=True, lars=False):
    def step(w, g, state, name):
        number = state["t"] - 1
        r, m = float(np.float32(rate_at(number))), float(np.float32(momentum_at(number)))
        own = decay if w.ndim > 1 else 0.0
        if lars and w.ndim > 1:
            inside = 0.0 if decoupled else own
            length = np.linalg.norm(w)
            g = 0.001 * length / (np.linalg.norm(g) + inside * length) * (g + inside * w)
        elif not decoupled:
            g = g + own * w
        state["a"] = m * state.get("a", 0.0) + g
        shrunk = w - r * own * w if decoupled else w
        return shrunk - r * (g + m * state["a"] if nesterov else state["a"])

    return step


@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("lars", [False, True])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("kind", [DyMomentumOptimizer, DyMomentumWOptimizer])
def test_twenty_steps_equal_numpy(kind, nesterov, lars, decay):
    def optimizer():
        return kind(
            rate(), MAX, MIN, max_iteration=STEPS, use_nesterov=nesterov, cooldown=0.25, use_lars=lars,
            weight_decay=decay, global_step=tf.train.get_global_step(),
        )  # fmt: skip

    expected = computed(update(decay, kind is DyMomentumWOptimizer, nesterov, lars))
    values = Trained(optimizer).run()
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)
    if not lars:
        close(values, expected, rtol=2e-6)
        close(Trained(optimizer, sparse=["rows"]).run(), expected, rtol=2e-6)


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
