"""Adam on the gradients of embeddings."""

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tf1.graph import sparse_adam


def trained(optimizer, rows):
    """The table and Adam's second moments after a step for each list of rows, and the graph."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        table = tf.get_variable("table", initializer=np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=True)
        picked = tf.placeholder(tf.int32, [None])
        # A row that is picked twice counts twice.
        train = optimizer.minimize(tf.reduce_sum(tf.square(tf.gather(table, picked))))
        session.run(tf.global_variables_initializer())
        for each in rows:
            session.run(train, {picked: each})
        return *session.run([table, optimizer.get_slot(table, "v")]), graph


def test_all_rows_move_as_in_tensorflow():
    sparse_adam.install()
    table, moments, graph = trained(tf.train.AdamOptimizer(0.1), [[0, 2, 2], [1], [2, 0]])
    assert not [op for op in graph.get_operations() if op.type == "ResourceScatterAdd"]
    expected, m, v = np.arange(12.0).reshape(4, 3), np.zeros((4, 3)), np.zeros((4, 3))
    for step, rows in enumerate([[0, 2, 2], [1], [2, 0]], start=1):
        gradient = 2 * expected * np.bincount(rows, minlength=4)[:, None]
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        expected = expected - rate * m / (np.sqrt(v) + 1e-8)
    np.testing.assert_allclose(table, expected, rtol=1e-5)
    # 1 - 0.999 has five digits in float32.
    np.testing.assert_allclose(moments, v, rtol=2e-5)


def test_a_subclass_keeps_its_own_sparse_update():
    class Frozen(tf.train.AdamOptimizer):
        def _apply_sparse_shared(self, grad, var, indices, scatter_add):
            return tf.no_op()

    sparse_adam.install()
    table, _, _ = trained(Frozen(0.1), [[0, 1]])
    np.testing.assert_array_equal(table, np.arange(12).reshape(4, 3))
