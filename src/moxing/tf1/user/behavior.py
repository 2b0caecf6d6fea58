"""The names of `tensorflow` that user modules see replaced.

`tf.disable_v2_behavior` has little to do: user modules have the behavior of TensorFlow 1 from the start. `tf.Tensor` is
the class of the tensors in a graph, so that `type(x) is tf.Tensor` holds as in TensorFlow 1.
"""

from __future__ import annotations

import importlib
from typing import Any

from moxing.tf1 import environment
from moxing.tf1.graph import v1_behavior
from moxing.tf1.user.names import before_1_0
from moxing.tf1.user.names.control_flow import cond
from moxing.tf1.user.names.op_libraries import load_op_library
from moxing.tf1.user.names.parsing import parse_example

__all__ = [
    "Tensor",
    "cond",
    "disable_v2_behavior",
    "enable_eager_execution",
    "load_op_library",
    "parse_example",
    *before_1_0.__all__,
]

tf = environment.import_tensorflow()

Tensor: Any = importlib.import_module("tensorflow.python.framework.ops").SymbolicTensor


def disable_v2_behavior() -> None:
    """Enables TensorFlow 1 behavior. Resource variables and control flow v2 stay on: the step loop needs them.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> disable_v2_behavior()
      >>> tf.resource_variables_enabled(), tf.executing_eagerly()
      (True, False)
      >>> tf.enable_v2_tensorshape()
    """
    v1_behavior.enable()


def enable_eager_execution(*args: Any, **kwargs: Any) -> None:
    """`tf.enable_eager_execution`: from here on `tf.Tensor` is the class of all tensors, those with values too."""
    from moxing.tf1.user import facade

    tf.compat.v1.enable_eager_execution(*args, **kwargs)
    vars(facade.module("tensorflow"))["Tensor"] = tf.Tensor


def __getattr__(name: str) -> Any:
    return getattr(before_1_0, name)
