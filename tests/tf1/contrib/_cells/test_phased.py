"""Phased LSTM, against NumPy."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from helpers.cell_steps import one_step, sigmoid
from moxing.tf1 import contrib

v1 = tf.compat.v1


def test_units_open_and_close() -> None:
    random = np.random.RandomState(4)
    x, c, h = (random.randn(8, size).astype(np.float32) for size in (3, 5, 5))
    time = np.linspace(0, 7, 8, dtype=np.float32)[:, None]
    output, state, value = one_step(lambda: contrib.rnn.PhasedLSTMCell(5, use_peepholes=True), (time, x), (c, h))

    def affine(scope: str, *args: np.ndarray) -> np.ndarray:
        return np.concatenate(args, 1) @ value[f"{scope}/kernel"] + value[f"{scope}/bias"]

    i, f = np.split(sigmoid(affine("mask_gates", x, h, c)), 2, 1)
    new_c = c * f + i * np.tanh(affine("new_input", x, h))
    new_h = np.tanh(new_c) * sigmoid(affine("output_gate", x, h, new_c))
    cycle = np.mod(time - value["phase"], value["period"]) / value["period"]
    ratio = value["ratio_on"]
    k = np.where(cycle < ratio / 2, 2 * cycle / ratio, np.where(cycle < ratio, 2 - 2 * cycle / ratio, 0.001 * cycle))
    np.testing.assert_allclose(state[0], k * new_c + (1 - k) * c, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(output, k * new_h + (1 - k) * h, rtol=1e-3, atol=1e-5)
    assert (k < 0.01).any() and (k > 0.3).any()


def test_initial_periods_and_phases_in_a_loop() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        cell = contrib.rnn.PhasedLSTMCell(200, period_init_min=2.0, period_init_max=50.0, trainable_ratio_on=False)
        inputs = (tf.ones([1, 2, 1]), tf.ones([1, 2, 3]))
        v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
        session.run(v1.global_variables_initializer())
        value = {one.op.name.rpartition("/")[2]: session.run(one) for one in v1.global_variables()}
        trained = [one.op.name.rpartition("/")[2] for one in v1.trainable_variables()]
    assert value["period"].min() >= 2 and value["period"].max() <= 50
    # Uniform logarithms: half of the periods are below the geometric mean, 10.
    assert 70 < (value["period"] < 10).sum() < 130
    assert (value["phase"] >= 0).all() and (value["phase"] <= value["period"]).all() and value["phase"].std() > 1
    assert "ratio_on" not in trained and "period" in trained
