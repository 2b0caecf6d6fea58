"""tf.contrib.tfprof: parameters and float operations of a graph."""

import tensorflow.compat.v1 as tf

from moxing.tf1.contrib.more import tfprof


def test_parameters_and_float_operations_are_counted(capfd):
    with tf.Graph().as_default() as graph:
        tf.matmul(tf.ones([2, 3]), tf.get_variable("w", [3, 5]))
        options = {**tfprof.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, "output": "none"}
        assert tfprof.print_model_analysis(graph, tfprof_options=options).total_parameters == 15
        options = {**tfprof.FLOAT_OPS_OPTIONS, "output": "none"}
        assert tfprof.print_model_analysis(graph, tfprof_options=options).total_float_ops >= 2 * 2 * 3 * 5
