"""The functions of `tensorflow` that user modules see replaced.

`tf.disable_v2_behavior` has little to do: user modules have the behavior of TensorFlow 1 from the start.
"""

from __future__ import annotations

from moxing.tf1.graph import v1_behavior
from moxing.tf1.user.control_flow import cond

__all__ = ["cond", "disable_v2_behavior"]


def disable_v2_behavior() -> None:
    """Enables TensorFlow 1 behavior. Resource variables and control flow v2 stay on: the step loop needs them.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> disable_v2_behavior()
      >>> tf.resource_variables_enabled(), tf.executing_eagerly()
      (True, False)
    """
    v1_behavior.enable()
