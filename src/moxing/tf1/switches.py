"""TensorFlow's global switches, set for one run and put back after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import tensor_shape
from tensorflow.python.ops import control_flow_util
from tensorflow.python.util import deprecation


@contextmanager
def run_graph(graph: tf.Graph) -> Iterator[tf.Graph]:
    """Makes `graph` the default, with the switches a run needs, whatever user code called before.

    Resource variables and control flow v2 are what the derived step loop is built from; the v1 `TensorShape` is what
    user code of that time reads (`shape[1].value`). Eager execution is off inside any graph.

    Example:
      >>> with run_graph(tf.Graph()):
      ...     tf.zeros([2, 3]).shape[1].value
      3
    """
    resource_variables = tf.resource_variables_enabled()
    complaints = deprecation._PRINT_DEPRECATION_WARNINGS
    control_flow_v2 = control_flow_util.ENABLE_CONTROL_FLOW_V2
    tensorshape_v2 = tensor_shape._TENSORSHAPE_V2_OVERRIDE
    tf.enable_resource_variables()
    deprecation._PRINT_DEPRECATION_WARNINGS = False
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = True
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = False
    try:
        with graph.as_default():
            yield graph
    finally:
        if not resource_variables:
            tf.disable_resource_variables()
        deprecation._PRINT_DEPRECATION_WARNINGS = complaints
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = control_flow_v2
        tensor_shape._TENSORSHAPE_V2_OVERRIDE = tensorshape_v2


@contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Inside, TensorFlow's own INFO lines are not printed; warnings are.

    Example:
      >>> with quiet_tensorflow():
      ...     tf.logging.get_verbosity() == tf.logging.WARN
      True
    """
    level = tf.logging.get_verbosity()
    tf.logging.set_verbosity(max(level, tf.logging.WARN))
    try:
        yield
    finally:
        tf.logging.set_verbosity(level)


def outer_seed() -> int | None:
    """The graph-level seed that the script set with `tf.set_random_seed` before the run, or None.

    Example:
      >>> with tf.Graph().as_default():
      ...     tf.set_random_seed(7)
      ...     outer_seed()
      7
    """
    if tf.executing_eagerly():
        from tensorflow.python.eager import context

        return context.global_seed()
    return tf.get_default_graph().seed
