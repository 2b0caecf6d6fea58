"""`sess.run('w:0')` and `graph.get_tensor_by_name('w:0')` return the value of a variable, as in TensorFlow 1.

The tensor of that name was the value there. For a resource variable it is the handle, which no script expects.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from moxing.tf1.era.user_only_method import USER_MARK

_GLOBAL_STEP = "global_step:0"


def install() -> None:
    """Gives user modules values for the names of variables. Calling it again changes nothing."""
    from tensorflow.python.client import session
    from tensorflow.python.framework import ops

    if not hasattr(ops.Graph.get_tensor_by_name, "_moxing_original"):
        ops.Graph.get_tensor_by_name = _by_name(ops.Graph.get_tensor_by_name)
        mapper = session._ElementFetchMapper
        mapper.__init__ = _fetching(mapper.__init__)


def _by_name(original: Any) -> Any:
    @functools.wraps(original)
    def get_tensor_by_name(self: Any, name: str) -> Any:
        tensor = original(self, name)
        if name == _GLOBAL_STEP:
            # Supervisors and monitored sessions look for it by this name, and expect a whole number.
            return next((one for one in self.get_collection("variables") if one.name == name), value_of(tensor))
        # Otherwise TensorFlow itself needs the handle.
        return value_of(tensor) if USER_MARK in sys._getframe(1).f_builtins else tensor

    get_tensor_by_name._moxing_original = original  # type: ignore[attr-defined]
    return get_tensor_by_name


def _fetching(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, fetches: Any, contraction_fn: Any) -> None:  # noqa: N807
        original(self, fetches, contraction_fn)
        found = self._unique_fetches
        named = [isinstance(fetch, str | bytes) for fetch in fetches]
        self._unique_fetches = [value_of(one) if is_name else one for one, is_name in zip(found, named, strict=True)]

    return __init__


def value_of(tensor: Any) -> Any:
    """Returns the tensor with the value of a variable for its handle, and any other tensor or operation as it is.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> with tf.Graph().as_default():
      ...     value_of(tf.get_variable('w', shape=[2], use_resource=True).handle).name
      'w/Read/ReadVariableOp:0'
    """
    op = getattr(tensor, "op", None)
    if op is None or op.type != "VarHandleOp":
        return tensor
    # Every variable has this operation, also one that comes from a file.
    try:
        return op.graph.get_operation_by_name(f"{op.name}/Read/ReadVariableOp").outputs[0]
    except KeyError:
        readers = [user for user in tensor.consumers() if user.type == "ReadVariableOp"]
        return readers[0].outputs[0] if readers else tensor
