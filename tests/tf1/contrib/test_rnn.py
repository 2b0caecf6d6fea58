"""Cells and loops of tf.contrib.rnn."""

from __future__ import annotations

import pytest

from helpers.session_runs import run
from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1


def test_cells_and_static_rnn() -> None:
    rnn = contrib.rnn
    with tf.Graph().as_default():
        cell = rnn.MultiRNNCell([rnn.DropoutWrapper(rnn.BasicLSTMCell(4), output_keep_prob=0.5), rnn.GRUCell(3)])
        outputs, _ = rnn.static_rnn(cell, [v1.random_normal([2, 5])] * 3, dtype=tf.float32)
        dynamic, _ = v1.nn.dynamic_rnn(rnn.LSTMCell(4), v1.random_normal([2, 3, 5]), dtype=tf.float32)
        loss = tf.reduce_sum(outputs[-1]) + tf.reduce_sum(dynamic)
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        values = run(outputs[-1], dynamic, train_op)
    assert values[0].shape == (2, 3)
    assert values[1].shape == (2, 3, 4)


def test_stacked_bidirectional_rnn() -> None:
    rnn = contrib.rnn
    with tf.Graph().as_default():
        cells = [[rnn.GRUCell(3), rnn.GRUCell(4)] for _ in range(2)]
        outputs, states_fw, states_bw = rnn.stack_bidirectional_dynamic_rnn(
            cells[0], cells[1], v1.random_normal([2, 5, 6]), dtype=tf.float32
        )
        assert len(states_fw) == len(states_bw) == 2
        names = [variable.op.name for variable in v1.global_variables()]
        assert run(outputs)[0].shape == (2, 5, 8)
    assert names[0] == "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/gru_cell/gates/kernel"
    with pytest.raises(ValueError, match="got 1 and 0"):
        rnn.stack_bidirectional_dynamic_rnn([object()], [], None)
