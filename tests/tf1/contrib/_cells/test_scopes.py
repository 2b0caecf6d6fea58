"""Cells and layers that are used in loops and outside."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from helpers.session_runs import run
from moxing.tf1 import contrib
from moxing.tf1.contrib._cells import scopes

v1 = tf.compat.v1


def test_a_cell_and_a_layer_in_two_loops_and_outside() -> None:
    scopes.repair()
    inputs = np.random.RandomState(1).randn(2, 3, 4).astype(np.float32)
    with tf.Graph().as_default():
        cell = contrib.rnn.MultiRNNCell([contrib.rnn.GRUCell(3), contrib.rnn.LSTMCell(3)])
        layer = v1.layers.Dense(5)
        loops = [v1.nn.dynamic_rnn(cell, tf.constant(inputs), dtype=tf.float32)[0] for _ in range(2)]
        mapped = [tf.map_fn(layer, loops[0]) for _ in range(2)]
        outside, _ = cell(tf.constant(inputs[:, 0]), cell.zero_state(2, tf.float32))
        variables = v1.global_variables()
        first, second, outside, mapped, whole = run(*loops, outside, mapped, layer(loops[0]))
    assert len(variables) == 8
    np.testing.assert_allclose(first, second)
    np.testing.assert_allclose(first[:, 0], outside, rtol=1e-5)
    np.testing.assert_allclose(mapped[1], whole, rtol=1e-5)


def test_it_is_applied_once() -> None:
    scopes.repair()
    once = v1.layers.Layer.__call__
    scopes.repair()
    assert v1.layers.Layer.__call__ is once
