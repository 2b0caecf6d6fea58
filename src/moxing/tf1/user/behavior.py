"""The functions at the top of `tf` that user modules see replaced: they have TensorFlow 1 behavior from the start."""
"""Functions of `tf` for user modules, which have the behavior of TensorFlow 1 from the start."""

from __future__ import annotations

from moxing.tf1.graph import v1_behavior
from moxing.tf1.user.op_libraries import load_op_library

__all__ = ["disable_v2_behavior", "load_op_library"]
from moxing.tf1.user.parsing import parse_example

__all__ = ["disable_v2_behavior", "parse_example"]


def disable_v2_behavior() -> None:
    """Enables TensorFlow 1 behavior. Resource variables and control flow v2 stay on: the step loop needs them.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> disable_v2_behavior()
      >>> tf.resource_variables_enabled(), tf.executing_eagerly()
      (True, False)
    """
    v1_behavior.enable()
