"""The graph of one run: TensorFlow's global switches are set for it and restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow.compat.v1 as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import tensor_shape
from tensorflow.python.ops import control_flow_util
from tensorflow.python.util import deprecation


@contextmanager
def run_graph(graph: tf.Graph, keep_seed: bool = False) -> Iterator[tf.Graph]:
    """Makes `graph` the default graph, with the switches that a run needs, whatever the script has set.

    The step loop is built from resource variables and control flow v2. User code of the time reads v1 shapes
    (`shape[1].value`). Eager execution is always off inside a graph.

    Args:
      graph: the new graph.
      keep_seed: also give it the random seed that the script set before.

    Example:
      >>> with run_graph(tf.Graph()):
      ...     tf.zeros([2, 3]).shape[1].value
      3
    """
    seed = context.global_seed() if tf.executing_eagerly() else tf.get_default_graph().seed
    resource_variables = tf.resource_variables_enabled()
    deprecation_warnings = deprecation._PRINT_DEPRECATION_WARNINGS
    control_flow_v2 = control_flow_util.ENABLE_CONTROL_FLOW_V2
    tensorshape_v2 = tensor_shape._TENSORSHAPE_V2_OVERRIDE
    tf.enable_resource_variables()
    deprecation._PRINT_DEPRECATION_WARNINGS = False
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = True
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = False
    try:
        with graph.as_default():
            if keep_seed:
                tf.set_random_seed(seed)
            yield graph
    finally:
        if not resource_variables:
            tf.disable_resource_variables()
        deprecation._PRINT_DEPRECATION_WARNINGS = deprecation_warnings
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = control_flow_v2
        tensor_shape._TENSORSHAPE_V2_OVERRIDE = tensorshape_v2


@contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Hides TensorFlow's own INFO lines inside the block; warnings are still shown.

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
