"""DyMomentumOptimizer and DyMomentumWOptimizer in NumPy."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf
from updates import STEPS, Trained, close, computed

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


def check_twenty_steps(kind, decoupled, nesterov, lars, decay):
    """Compares 20 steps of an optimizer of class `kind` with NumPy, with dense and with sparse gradients."""

    def optimizer():
        return kind(
            rate(), MAX, MIN, max_iteration=STEPS, use_nesterov=nesterov, cooldown=0.25, use_lars=lars,
            weight_decay=decay, global_step=tf.train.get_global_step(),
        )  # fmt: skip

    expected = computed(update(decay, decoupled, nesterov, lars))
    values = Trained(optimizer).run()
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)
    if not lars:
        close(values, expected, rtol=2e-6)
        close(Trained(optimizer, sparse=["rows"]).run(), expected, rtol=2e-6)
