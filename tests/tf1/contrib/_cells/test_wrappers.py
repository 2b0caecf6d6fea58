"""Cells around cells, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.cell_steps import one_step, sigmoid
from moxing.tf1 import contrib

v1 = tf.compat.v1
RANDOM = np.random.RandomState(2)
X = RANDOM.randn(2, 3).astype(np.float32)
H = RANDOM.randn(2, 3).astype(np.float32)


def rnn_step(x: np.ndarray, h: np.ndarray, value: dict[str, np.ndarray], prefix: str = "basic_rnn_cell/") -> np.ndarray:
    return np.tanh(np.concatenate([x, h], 1) @ value[f"{prefix}kernel"] + value[f"{prefix}bias"])


def test_projections_and_embeddings() -> None:
    rnn = contrib.rnn
    output, _, value = one_step(lambda: rnn.OutputProjectionWrapper(rnn.BasicRNNCell(3), 5, tf.nn.relu), X, H)
    expected = np.maximum(rnn_step(X, H, value) @ value["kernel"] + value["bias"], 0)
    np.testing.assert_allclose(output, expected, rtol=1e-5)
    output, _, value = one_step(lambda: rnn.InputProjectionWrapper(rnn.BasicRNNCell(3), 4), X, H)
    np.testing.assert_allclose(output, rnn_step(X @ value["kernel"] + value["bias"], H, value), rtol=1e-5)
    ids = np.array([4, 1])
    output, _, value = one_step(lambda: rnn.EmbeddingWrapper(rnn.BasicRNNCell(3), 6, 2), ids, H)
    np.testing.assert_allclose(output, rnn_step(value["embedding"][ids], H, value), rtol=1e-5)
    with pytest.raises(ValueError, match="output_size must be at least 1, got 0"):
        rnn.OutputProjectionWrapper(rnn.BasicRNNCell(3), 0)
    with pytest.raises(TypeError, match="cell must be an RNNCell, got 3"):
        rnn.InputProjectionWrapper(3, 4)


@pytest.mark.parametrize("coupled", [True, False])
def test_highway(coupled: bool) -> None:
    rnn = contrib.rnn
    # It has no scope of its own, as in TensorFlow 1: the names of its variables begin with carry_ and transform_.
    with tf.Graph().as_default(), v1.Session() as session:
        cell = rnn.HighwayWrapper(rnn.BasicRNNCell(3), coupled, carry_bias_init=0.5)
        output, state = cell(tf.constant(X), tf.constant(H))
        session.run(v1.global_variables_initializer())
        value = {one.op.name: session.run(one) for one in v1.global_variables()}
        output, state = session.run([output, state])
    inner = rnn_step(X, H, value)
    carry = sigmoid(X @ value["carry_w"] + 0.5)
    transform = 1 - carry if coupled else sigmoid(X @ value["transform_w"] - 0.5)
    np.testing.assert_allclose(output, X * carry + inner * transform, rtol=1e-5)
    np.testing.assert_allclose(state, inner, rtol=1e-5)


def test_attention_over_the_last_outputs() -> None:
    rnn = contrib.rnn
    attention = RANDOM.randn(2, 3).astype(np.float32)
    outputs = RANDOM.randn(2, 4, 3).astype(np.float32)
    state = (H, attention, outputs.reshape(2, 12))
    output, new_state, value = one_step(lambda: rnn.AttentionCellWrapper(rnn.BasicRNNCell(3), 4), X, state)
    h = rnn_step(np.concatenate([X, attention], 1) @ value["kernel"] + value["bias"], H, value)
    hidden = outputs @ value["attention/attn_w"][0, 0]
    hidden += (h @ value["attention/kernel"] + value["attention/bias"])[:, None]
    weights = np.exp((value["attention/attn_v"] * np.tanh(hidden)).sum(2))
    attended = ((weights / weights.sum(1, keepdims=True))[..., None] * outputs).sum(1)
    expected = np.concatenate([h, attended], 1) @ value["attn_output_projection/kernel"]
    expected += value["attn_output_projection/bias"]
    np.testing.assert_allclose(output, expected, rtol=1e-5)
    np.testing.assert_allclose(new_state[0], h, rtol=1e-5)
    np.testing.assert_allclose(new_state[1], attended, rtol=1e-5)
    np.testing.assert_allclose(
        new_state[2].reshape(2, 4, 3), np.concatenate([outputs[:, 1:], expected[:, None]], 1), rtol=1e-5
    )
    joined, joined_state, _ = one_step(
        lambda: rnn.AttentionCellWrapper(rnn.BasicRNNCell(3), 4, state_is_tuple=False), X, np.concatenate(state, 1)
    )
    np.testing.assert_allclose(joined, output, rtol=1e-5)
    np.testing.assert_allclose(joined_state, np.concatenate(new_state, 1), rtol=1e-5)
