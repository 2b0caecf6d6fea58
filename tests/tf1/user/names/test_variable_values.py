"""The value of a variable by the name of its tensor."""

import tensorflow.compat.v1 as tf

from moxing.tf1.user import user_modules
from moxing.tf1.user.names import variable_values


def test_names_of_variables_give_values_to_user_modules_only():
    variable_values.install()
    variable_values.install()
    script = "def by_name(graph): return graph.get_tensor_by_name('net/w:0')\n"
    names = {"__builtins__": user_modules.user_builtins()}
    exec(script, names)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        with tf.variable_scope("net"):
            variable = tf.get_variable("w", initializer=[1.5, 2.5], use_resource=True)
        session.run(variable.initializer)
        assert graph.get_tensor_by_name("net/w:0") is variable.handle
        assert session.run(names["by_name"](graph)).tolist() == [1.5, 2.5]
    with tf.Graph().as_default():
        step = tf.Variable(0, name="global_step", use_resource=True)
        assert tf.train.get_global_step() is step
