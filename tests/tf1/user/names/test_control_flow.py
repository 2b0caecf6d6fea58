"""`tf.cond` with branches of another structure."""

import tensorflow.compat.v1 as tf

from moxing.tf1.user.names.control_flow import cond


def test_lists_tuples_and_single_tensors_may_meet():
    with tf.Graph().as_default(), tf.Session() as session:
        flag = tf.placeholder(tf.bool, [])
        one, two = tf.constant(1), tf.constant(2)
        variable = tf.get_variable("v", initializer=3)
        results = [
            cond(flag, lambda: [one, two], lambda: (two, one)),
            cond(flag, lambda: [one], lambda: two),
            cond(flag, lambda: one, lambda: [two]),
            cond(flag, lambda: [one], lambda: [two], strict=True),
            cond(flag, fn1=lambda: (one, [two]), fn2=lambda: [two, one]),
            cond(flag, lambda: variable, lambda: two),
        ]
        run_op = cond(flag, lambda: variable.assign(5).op, lambda: tf.no_op())
        session.run(variable.initializer)
        assert session.run(results, {flag: True}) == [[1, 2], 1, 1, [1], (1, [2]), 3]
        assert session.run(results, {flag: False}) == [[2, 1], 2, 2, [2], (2, [1]), 2]
        session.run(run_op, {flag: True})
        assert session.run(variable) == 5
