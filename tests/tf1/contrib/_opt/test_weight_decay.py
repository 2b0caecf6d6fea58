"""Decoupled weight decay."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1


def test_variables_shrink_before_the_step() -> None:
    opt = contrib.opt
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = (v1.get_variable(name, initializer=np.full([2], 4.0, np.float32)) for name in "ab")
        table = v1.get_variable("table", initializer=np.full([3, 1], 4.0, np.float32))
        loss = tf.reduce_sum(a) + tf.reduce_sum(b) + tf.reduce_sum(tf.gather(table, [1]))
        momentum = opt.MomentumWOptimizer(0.25, 1.0, 0.0).minimize(loss, decay_var_list=[a, table])
        adam = opt.AdamWOptimizer(0.5, learning_rate=0.1)
        all_decay = adam.apply_gradients(adam.compute_gradients(loss, [a, b]))
        adagrad = opt.extend_with_decoupled_weight_decay(v1.train.AdagradOptimizer)
        own = adagrad(weight_decay=0.5, learning_rate=1.0, initial_accumulator_value=3.0).minimize(loss, var_list=[a])
        session.run(v1.global_variables_initializer())
        session.run(momentum)
        np.testing.assert_allclose(session.run(a), 4 * 0.75 - 1)
        np.testing.assert_allclose(session.run(b), 4 - 1)
        np.testing.assert_allclose(session.run(table)[:, 0], [4, 4 * 0.75 - 1, 4])
        session.run(all_decay)
        np.testing.assert_allclose(session.run([a[0], b[0]]), [2 * 0.5 - 0.1, 3 * 0.5 - 0.1], rtol=1e-5)
        session.run(own)
        np.testing.assert_allclose(session.run(a), 0.9 * 0.5 - 1 / 2, atol=1e-6)
