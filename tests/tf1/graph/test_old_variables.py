"""`variable += value` in a graph."""

import tensorflow.compat.v1 as tf

from moxing.tf1.graph import old_variables


def test_in_place_operators_return_tensors_and_leave_the_variable():
    old_variables.install()
    old_variables.install()
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(6.0, use_resource=True)
        added = subtracted = multiplied = divided = raised = variable
        added += 2
        subtracted -= 2
        multiplied *= 2
        divided /= 2
        raised **= 2
        session.run(variable.initializer)
        assert session.run([added, subtracted, multiplied, divided, raised, variable]) == [8, 4, 12, 3, 36, 6]
