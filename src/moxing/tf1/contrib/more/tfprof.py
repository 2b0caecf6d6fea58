"""`tf.contrib.tfprof.model_analyzer`, on `tf.profiler.profile`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["print_model_analysis"]

_builder = tf.profiler.ProfileOptionBuilder
TRAINABLE_VARS_PARAMS_STAT_OPTIONS = _builder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = _builder.float_operation()
PRINT_ALL_TIMING_MEMORY = _builder.time_and_memory()


def print_model_analysis(
    graph: Any,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
) -> Any:
    """Prints how many parameters or float operations the parts of a graph have, and returns their tree.

    Args:
      graph: the graph.
      run_meta: a `tf.RunMetadata` with times.
      op_log: unused by `tf.profiler.profile` unless it is given.
      tfprof_cmd: `scope`, `graph`, `code` or `op`.
      tfprof_options: one of the options of this module.

    Returns:
      A protocol buffer with `total_parameters` and `total_float_ops`.
    """
    return tf.profiler.profile(graph, run_meta=run_meta, op_log=op_log, cmd=tfprof_cmd, options=tfprof_options)
