"""Block cells and fused cells are the plain cells, with the same variables."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1

X = np.random.RandomState(4).randn(4, 3, 2).astype(np.float32)
LENGTHS = [4, 0, 2]


def test_block_cells_are_the_plain_ones() -> None:
    """Trained in one step too: the gradient of the kernel is that of the operations."""
    rnn = contrib.rnn
    with tf.Graph().as_default(), v1.Session() as session:
        results = []
        for scope, cell in (
            ("a", rnn.LSTMCell(5, use_peepholes=True)),
            ("b", rnn.LSTMBlockCell(5, use_peephole=True)),
            ("c", rnn.GRUCell(5)),
            ("d", rnn.GRUBlockCellV2(5)),
        ):
            with v1.variable_scope(scope, initializer=v1.random_uniform_initializer(-1, 1)):
                outputs, state = cell(tf.constant(X[0]), cell.zero_state(3, tf.float32))
                outputs, _ = cell(tf.constant(X[1]), state)
            variables = v1.trainable_variables(scope)
            gradients = tf.gradients(tf.reduce_sum(outputs**2), variables)
            results.append((outputs, dict(zip([one.op.name[2:] for one in variables], gradients, strict=True))))
        session.run(v1.global_variables_initializer())
        # The same values for both cells of a pair.
        for first, second in (("a", "b"), ("c", "d")):
            for one in v1.trainable_variables(first):
                other = next(x for x in v1.trainable_variables(second) if x.op.name[2:] == one.op.name[2:])
                other.load(session.run(one), session)
        lstm, block, gru, gru_block = session.run(results)
    for plain, special in ((lstm, block), (gru, gru_block)):
        np.testing.assert_allclose(special[0], plain[0], rtol=1e-4, atol=1e-6)
        assert set(plain[1]) == set(special[1])
        for name, gradient in plain[1].items():
            np.testing.assert_allclose(special[1][name], gradient, rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="num_units or cell_size, not both: got None and None"):
        rnn.GRUBlockCell()


def test_fused_cells_give_outputs_and_states_of_the_loop() -> None:
    rnn = contrib.rnn
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(X)
        rnn.LSTMBlockFusedCell(5)(x, dtype=tf.float32)
        fused = rnn.LSTMBlockFusedCell(5)
        results = {
            "fused": fused(x, dtype=tf.float32, sequence_length=LENGTHS, scope="rnn/lstm_cell"),
            "again": fused([tf.constant(one) for one in X], dtype=tf.float32, sequence_length=LENGTHS),
            "back": rnn.TimeReversedFusedRNN(fused)(x, dtype=tf.float32, sequence_length=LENGTHS),
        }
        names = [one.op.name for one in v1.global_variables()]
        v1.get_variable_scope().reuse_variables()
        cell = rnn.LSTMCell(5, reuse=True, name="lstm_cell")
        results["loop"] = v1.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float32, time_major=True)
        results["adaptor"] = rnn.FusedRNNCellAdaptor(cell, use_dynamic_rnn=True)(x, dtype=tf.float32)
        reverse = tf.reverse_sequence(X, LENGTHS, 0, 1)
        results["reverse"] = v1.nn.dynamic_rnn(cell, reverse, LENGTHS, dtype=tf.float32, time_major=True)
        session.run(v1.global_variables_initializer())
        values = session.run(results)
    scopes = ("lstm_fused_cell", "rnn/lstm_cell")
    assert names == [f"{scope}/{name}" for scope in scopes for name in ("kernel", "bias")]
    np.testing.assert_allclose(values["fused"][0], values["loop"][0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(values["fused"][1], values["loop"][1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(values["again"][0], values["fused"][0], rtol=1e-5)
    np.testing.assert_allclose(values["back"][1], values["reverse"][1], rtol=1e-4, atol=1e-6)
    assert values["adaptor"][0].shape == (4, 3, 5)
