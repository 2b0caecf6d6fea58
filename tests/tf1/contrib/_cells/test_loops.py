"""Stacks of bidirectional layers."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.session_runs import run
from moxing.tf1 import contrib

v1 = tf.compat.v1


def test_it_is_the_dynamic_one_on_lists() -> None:
    rnn = contrib.rnn
    inputs = np.random.RandomState(1).randn(2, 3, 4).astype(np.float32)
    with tf.Graph().as_default():
        cells = [[rnn.GRUCell(3), rnn.GRUCell(2)] for _ in range(2)]
        steps = [tf.constant(inputs[:, step]) for step in range(3)]
        static = rnn.stack_bidirectional_rnn(*cells, steps, dtype=tf.float32, sequence_length=[3, 2])
        names = [variable.op.name for variable in v1.global_variables()]
        dynamic = rnn.stack_bidirectional_dynamic_rnn(
            *cells, tf.constant(inputs), dtype=tf.float32, sequence_length=[3, 2], scope="second"
        )
        static, dynamic = run(static, dynamic)
    assert names[0] == "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/gru_cell/gates/kernel"
    np.testing.assert_allclose(np.stack(static[0], 1), dynamic[0], rtol=1e-5)
    for one, other in zip([*static[1], *static[2]], [*dynamic[1], *dynamic[2]], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    with pytest.raises(ValueError, match="got 1 and 0"):
        rnn.stack_bidirectional_rnn([object()], [], [])
