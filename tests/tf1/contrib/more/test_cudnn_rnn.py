"""The layers of tf.contrib.cudnn_rnn, compared with NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib.more import cudnn_rnn


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, kernel, bias, h, c):
    outputs = []
    for row in x:
        i, j, f, o = np.split(np.concatenate([row, h], 1) @ kernel + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(j)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), h, c


def gru(x, weights, h):
    gates, gate_bias, inner, hidden, inner_bias, hidden_bias = weights
    outputs = []
    for row in x:
        r, u = np.split(sigmoid(np.concatenate([row, h], 1) @ gates + gate_bias), 2, axis=1)
        new = np.tanh(row @ inner + inner_bias + r * (h @ hidden + hidden_bias))
        h = (1 - u) * new + u * h
        outputs.append(h)
    return np.array(outputs), h


def test_lstm_and_gru():
    x = np.random.RandomState(0).randn(4, 2, 3).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        two, (h2, c2) = cudnn_rnn.CudnnLSTM(2, 5)(x)
        both, (hb, cb) = cudnn_rnn.CudnnLSTM(1, 5, direction="bidirectional", name="both")(x)
        again, _ = cudnn_rnn.CudnnLSTM(1, 5, name="again")(x, (tf.ones([1, 2, 5]), tf.zeros([1, 2, 5])))
        out, (state,) = cudnn_rnn.CudnnGRU(1, 5)(x, training=False)
        session.run(tf.global_variables_initializer())
        found = {one.op.name: session.run(one) for one in tf.trainable_variables()}
        results = session.run([two, h2, c2, both, hb, cb, again, out, state])
    two, h2, c2, both, hb, cb, again, out, state = results
    zero = np.zeros([2, 5])
    cell = "cudnn_lstm/rnn/multi_rnn_cell/cell_{}/cudnn_compatible_lstm_cell/"
    first, h_first, c_first = lstm(x, found[cell.format(0) + "kernel"], found[cell.format(0) + "bias"], zero, zero)
    second, h_second, _ = lstm(first, found[cell.format(1) + "kernel"], found[cell.format(1) + "bias"], zero, zero)
    np.testing.assert_allclose(two, second, atol=1e-5)
    np.testing.assert_allclose(h2, [h_first, h_second], atol=1e-5)
    np.testing.assert_allclose(c2[0], c_first, atol=1e-5)
    way = "both/stack_bidirectional_rnn/cell_0/bidirectional_rnn/{}/cudnn_compatible_lstm_cell/"
    ahead, h_ahead, _ = lstm(x, found[way.format("fw") + "kernel"], found[way.format("fw") + "bias"], zero, zero)
    back, h_back, c_back = lstm(
        x[::-1], found[way.format("bw") + "kernel"], found[way.format("bw") + "bias"], zero, zero
    )
    np.testing.assert_allclose(both, np.concatenate([ahead, back[::-1]], 2), atol=1e-5)
    np.testing.assert_allclose(hb, [h_ahead, h_back], atol=1e-5)
    np.testing.assert_allclose(cb[1], c_back, atol=1e-5)
    name = "again/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/"
    expected, _, _ = lstm(x, found[name + "kernel"], found[name + "bias"], zero + 1, zero)
    np.testing.assert_allclose(again, expected, atol=1e-5)
    name = "cudnn_gru/rnn/multi_rnn_cell/cell_0/cudnn_compatible_gru_cell/"
    inner = [f"candidate/{where}_projection/{what}" for what in ("kernel", "bias") for where in ("input", "hidden")]
    expected, last = gru(x, [found[name + one] for one in ("gates/kernel", "gates/bias", *inner)], zero)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    np.testing.assert_allclose(state[0], last, atol=1e-5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="direction='both'"):
        cudnn_rnn.CudnnLSTM(1, 2, direction="both")
    with pytest.raises(NotImplementedError, match="skip_input"):
        cudnn_rnn.CudnnLSTM(1, 2, input_mode="skip_input")
    with pytest.raises(NotImplementedError, match="biases start at 0"):
        cudnn_rnn.CudnnGRU(1, 2, bias_initializer=1)
