"""Variants of Adam, against NumPy."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

GRADIENTS = np.random.RandomState(1).randn(3, 4, 2).astype(np.float32)
ROWS = np.array([2, 0])


def train(kind, sparse: bool) -> np.ndarray:
    """The variable after each of three steps; a sparse gradient has two of its four rows."""
    with tf.Graph().as_default(), v1.Session() as session:
        var = v1.get_variable("w", initializer=np.ones([4, 2], np.float32))
        grad = v1.placeholder(tf.float32, [None, 2])
        given = tf.IndexedSlices(grad, tf.constant(ROWS), tf.constant([4, 2])) if sparse else grad
        step = kind(0.1).apply_gradients([(given, var)])
        session.run(v1.global_variables_initializer())
        values = []
        for one in GRADIENTS:
            session.run(step, {grad: one[ROWS] if sparse else one})
            values.append(session.run(var))
        return np.array(values)


def expected(update, moved) -> np.ndarray:
    """Applies update(m, v, g, t) -> m, v, step to the rows `moved`."""
    var, m, v = np.ones([4, 2]), np.zeros([4, 2]), np.zeros([4, 2])
    values = []
    for t, g in enumerate(GRADIENTS, 1):
        m[moved], v[moved], step = update(m[moved], v[moved], g[moved], t)
        var[moved] -= step
        values.append(var.copy())
    return np.array(values)


def adam(m, v, g, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return m, v, 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)


def nadam(m, v, g, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return m, v, 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * (0.9 * m + 0.1 * g) / (np.sqrt(v) + 1e-8)


def adamax(m, v, g, t):
    m, v = 0.9 * m + 0.1 * g, np.maximum(0.999 * v, np.abs(g))
    return m, v, 0.1 / (1 - 0.9**t) * m / (v + 1e-8)


def test_steps_are_those_of_the_papers() -> None:
    opt, everything = contrib.opt, slice(None)
    for kind, update in (
        (opt.LazyAdamOptimizer, adam),
        (opt.NadamOptimizer, nadam),
        (opt.AdaMaxOptimizer, adamax),
    ):
        np.testing.assert_allclose(train(kind, False), expected(update, everything), rtol=1e-4)
        # Rows without a gradient keep their values; the same two rows have one in each step.
        np.testing.assert_allclose(train(kind, True), expected(update, ROWS), rtol=1e-4)


def test_lazy_adam_leaves_the_moments_of_other_rows() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        table = v1.get_variable("w", initializer=np.ones([4, 2], np.float32))
        ids = v1.placeholder(tf.int32, [None])
        optimizer = contrib.opt.LazyAdamOptimizer(0.1)
        step = optimizer.minimize(tf.reduce_sum(tf.gather(table, ids)))
        session.run(v1.global_variables_initializer())
        session.run(step, {ids: [1, 1]})
        before = session.run([table, optimizer.get_slot(table, "m")])
        session.run(step, {ids: [2]})
        after = session.run([table, optimizer.get_slot(table, "m")])
        names = {one.op.name for one in v1.global_variables()}
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one[[0, 1, 3]], other[[0, 1, 3]])
    np.testing.assert_allclose(before[1][1], 0.2, rtol=1e-5)
    assert {"w/Adam", "w/Adam_1"} < names
