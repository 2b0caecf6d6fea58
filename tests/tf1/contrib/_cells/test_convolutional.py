"""Convolutional LSTM: with a kernel of size 1 it is an LSTM at every position."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.cell_steps import one_step, sigmoid
from moxing.tf1 import contrib

v1 = tf.compat.v1


@pytest.mark.parametrize("ndims", [1, 2, 3])
def test_positions_are_independent_with_a_kernel_of_one(ndims: int) -> None:
    random = np.random.RandomState(4)
    places = [2, 3, 2][:ndims]
    x, c, h = (random.randn(2, *places, size).astype(np.float32) for size in (3, 4, 4))
    kind = getattr(contrib.rnn, f"Conv{ndims}DLSTMCell")

    def cell():
        return kind(input_shape=[*places, 3], output_channels=4, kernel_shape=[1] * ndims, skip_connection=True)

    output, state, value = one_step(cell, x, v1.nn.rnn_cell.LSTMStateTuple(c, h))
    kernel = value["kernel"].reshape(7, 16)
    i, j, f, o = np.split(np.concatenate([x, h], -1) @ kernel + value["biases"], 4, -1)
    c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(state[0], c, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(output[..., :4], np.tanh(c) * sigmoid(o), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(output[..., 4:], x)


def test_sequences_and_wrong_shapes() -> None:
    with tf.Graph().as_default():
        cell = contrib.rnn.Conv2DLSTMCell(input_shape=[4, 5, 1], output_channels=2, kernel_shape=[3, 3])
        outputs, state = v1.nn.dynamic_rnn(cell, tf.ones([2, 3, 4, 5, 1]), dtype=tf.float32)
        names = [one.op.name for one in v1.global_variables()]
        assert outputs.shape.as_list() == [2, 3, 4, 5, 2]
        assert state.c.shape.as_list() == [2, 4, 5, 2]
    assert names == ["rnn/conv_2d_lstm_cell/kernel", "rnn/conv_2d_lstm_cell/biases"]
    with pytest.raises(ValueError, match="input_shape must have 3 sizes for conv_ndims=2"):
        contrib.rnn.Conv2DLSTMCell(input_shape=[4, 1], output_channels=2, kernel_shape=[3, 3])
