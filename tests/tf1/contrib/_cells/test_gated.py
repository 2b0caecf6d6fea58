"""Cells with gates, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.cell_steps import one_step, sigmoid
from moxing.tf1 import contrib

RANDOM = np.random.RandomState(4)
X, C, H = (RANDOM.randn(2, size).astype(np.float32) for size in (6, 4, 4))
XH = np.concatenate([X, H], 1)


def norm(x: np.ndarray, value: dict[str, np.ndarray], scope: str) -> np.ndarray:
    scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-12)
    return scaled * value[f"{scope}/gamma"] + value[f"{scope}/beta"]


def test_layer_norm_lstm() -> None:
    output, state, value = one_step(lambda: contrib.rnn.LayerNormBasicLSTMCell(4, forget_bias=0.5), X, (C, H))
    gates = np.split(XH @ value["kernel"], 4, 1)
    i, j, f, o = (
        norm(gate, value, scope) for gate, scope in zip(gates, ("input", "transform", "forget", "output"), strict=True)
    )
    c = norm(C * sigmoid(f + 0.5) + sigmoid(i) * np.tanh(j), value, "state")
    np.testing.assert_allclose(state[0], c, rtol=1e-4)
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o), rtol=1e-4)
    assert state[1] is not None and "bias" not in value
    output, _, value = one_step(
        lambda: contrib.rnn.LayerNormBasicLSTMCell(4, layer_norm=False, dropout_keep_prob=tf.constant(1.0)), X, (C, H)
    )
    i, j, f, o = np.split(XH @ value["kernel"] + value["bias"], 4, 1)
    c = C * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o), rtol=1e-4)


def test_recurrent_dropout_drops_new_inputs_only() -> None:
    """What is dropped keeps the old state, scaled by the forget gate."""
    _, state, value = one_step(
        lambda: contrib.rnn.LayerNormBasicLSTMCell(64, layer_norm=False, dropout_keep_prob=0.25),
        X,
        (np.ones([2, 64], np.float32), np.zeros([2, 64], np.float32)),
    )
    i, j, f, _ = np.split(np.concatenate([X, np.zeros([2, 64])], 1) @ value["kernel"] + value["bias"], 4, 1)
    old, new = sigmoid(f + 1), sigmoid(i) * np.tanh(j) / 0.25
    dropped, kept = np.isclose(state[0], old, rtol=1e-3), np.isclose(state[0], old + new, rtol=1e-3)
    assert (dropped | kept).all()
    assert 0.6 < dropped.mean() < 0.9


def test_coupled_gates() -> None:
    def cell():
        return contrib.rnn.CoupledInputForgetGateLSTMCell(4, use_peepholes=True, num_proj=4, proj_clip=0.8)

    output, state, value = one_step(cell, X, (C, H))
    j, f, o = np.split(XH @ value["W_0"] + value["B"], 3, 1)
    forget = sigmoid(f + 1 + value["W_F_diag"] * C)
    c = forget * C + (1 - forget) * np.tanh(j)
    h = sigmoid(o + value["W_O_diag"] * c) * np.tanh(c)
    np.testing.assert_allclose(state[0], c, rtol=1e-5)
    np.testing.assert_allclose(output, np.clip(h @ value["W_P_0"], -0.8, 0.8), rtol=1e-5)
    with pytest.raises(ValueError, match="must be 1, got 2 and 1"):
        contrib.rnn.CoupledInputForgetGateLSTMCell(4, num_unit_shards=2)


def test_nas() -> None:
    output, state, value = one_step(lambda: contrib.rnn.NASCell(4, use_biases=True), X, (C, H))
    x = np.split(X @ value["kernel"], 8, 1)
    m = np.split(H @ value["recurrent_kernel"] + value["bias"], 8, 1)
    leaves = [
        function(x[n] * m[n] if n == 3 else x[n] + m[n])
        for n, function in enumerate(
            [
                sigmoid,
                lambda v: np.maximum(v, 0),
                sigmoid,
                lambda v: np.maximum(v, 0),
                np.tanh,
                sigmoid,
                np.tanh,
                sigmoid,
            ]
        )
    ]
    c = np.tanh(np.tanh(leaves[0] * leaves[1]) + C) * np.tanh(leaves[2] + leaves[3])
    h = np.tanh(c * np.tanh(np.tanh(leaves[4] * leaves[5]) + sigmoid(leaves[6] + leaves[7])))
    np.testing.assert_allclose(state[0], c, rtol=1e-5)
    np.testing.assert_allclose(output, h, rtol=1e-5)
    projected, _, value = one_step(lambda: contrib.rnn.NASCell(4, num_proj=3), X, (C, H[:, :3]))
    assert projected.shape == (2, 3) and value["projection_weights"].shape == (4, 3)


def test_update_gate_and_intersection() -> None:
    output, state, value = one_step(lambda: contrib.rnn.UGRNNCell(4), X, H)
    g, c = np.split(XH @ value["kernel"] + value["bias"], 2, 1)
    gate = sigmoid(g + 1)
    np.testing.assert_allclose(output, gate * H + (1 - gate) * np.tanh(c), rtol=1e-5)
    np.testing.assert_array_equal(output, state)

    output, state, value = one_step(lambda: contrib.rnn.IntersectionRNNCell(4, num_in_proj=4), X, H)
    x = X @ value["in_projection/kernel"] + value["in_projection/bias"]
    gh, h, gy, y = np.split(np.concatenate([x, H], 1) @ value["kernel"] + value["bias"], 4, 1)
    gh, gy = sigmoid(gh + 1), sigmoid(gy + 1)
    np.testing.assert_allclose(state, gh * H + (1 - gh) * np.tanh(h), rtol=1e-5)
    np.testing.assert_allclose(output, gy * x + (1 - gy) * np.maximum(y, 0), rtol=1e-5)
    with pytest.raises(ValueError, match="must have 4 columns, got 6; pass num_in_proj=4"):
        one_step(lambda: contrib.rnn.IntersectionRNNCell(4), X, H)


def test_groups() -> None:
    output, state, value = one_step(lambda: contrib.rnn.GLSTMCell(4, num_proj=2, number_of_groups=2), X, (C, H[:, :2]))
    parts = [
        np.split(np.concatenate([X[:, 3 * g : 3 * g + 3], H[:, g : g + 1]], 1) @ value[f"group{g}/kernel"], 4, 1)
        for g in range(2)
    ]
    i, j, f, o = (
        np.concatenate(gate, 1) + value[f"bias_{name}"]
        for name, gate in zip("ijfo", zip(*parts, strict=True), strict=True)
    )
    c = sigmoid(f + 1) * C + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(state[0], c, rtol=1e-5)
    np.testing.assert_allclose(output, (sigmoid(o) * np.tanh(c)) @ value["projection/kernel"], rtol=1e-5)
    with pytest.raises(ValueError, match=r"num_units must be divisible by number_of_groups \(3\), got 4"):
        contrib.rnn.GLSTMCell(4, number_of_groups=3)
