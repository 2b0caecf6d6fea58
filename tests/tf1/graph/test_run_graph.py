"""The switches of TensorFlow that a run sets and restores."""

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import tensor_shape
from tensorflow.python.ops import control_flow_util

from moxing.tf1.graph.run_graph import quiet_tensorflow, run_graph


def switches():
    return (
        tf.resource_variables_enabled(),
        control_flow_util.ENABLE_CONTROL_FLOW_V2,
        tensor_shape._TENSORSHAPE_V2_OVERRIDE,
    )


@pytest.mark.parametrize("resource_variables", [True, False])
def test_switches_are_restored_after_an_error(resource_variables):
    was_enabled = tf.resource_variables_enabled()
    (tf.enable_resource_variables if resource_variables else tf.disable_resource_variables)()
    try:
        before = switches()
        with pytest.raises(ZeroDivisionError), run_graph(tf.Graph()) as graph:
            assert tf.get_default_graph() is graph and switches() == (True, True, False)
            assert tf.zeros([2, 3]).shape[1].value == 3
            raise ZeroDivisionError
        assert switches() == before
    finally:
        (tf.enable_resource_variables if was_enabled else tf.disable_resource_variables)()


def test_quiet_tensorflow_never_shows_more():
    level = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.ERROR)
    try:
        with quiet_tensorflow():
            assert tf.logging.get_verbosity() == tf.logging.ERROR
        assert tf.logging.get_verbosity() == tf.logging.ERROR
    finally:
        tf.logging.set_verbosity(level)


def test_the_seed_of_the_script_is_that_of_the_run():
    with tf.Graph().as_default():
        with run_graph(tf.Graph(), keep_seed=True) as graph:
            assert graph.seed is None
        tf.set_random_seed(11)
        with run_graph(tf.Graph(), keep_seed=True) as graph:
            assert graph.seed == 11


def test_other_graphs_have_no_seed_of_the_script():
    with tf.Graph().as_default():
        tf.set_random_seed(11)
        with run_graph(tf.Graph()) as graph:
            assert graph.seed is None
