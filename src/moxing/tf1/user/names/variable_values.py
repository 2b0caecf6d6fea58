"""`graph.get_tensor_by_name('w:0')` returns the value of a variable, as in TensorFlow 1.

The tensor of that name was the value there. For a resource variable it is the handle, which no script expects.
`moxing.tf1.graph.variable_fetches` does the same for what a session fetches.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from moxing.tf1.era.user_only_method import USER_MARK

_GLOBAL_STEP = "global_step:0"


def install() -> None:
    """Gives user modules values for the names of variables. Calling it again changes nothing."""
    from tensorflow.python.framework import ops

    if not hasattr(ops.Graph.get_tensor_by_name, "_moxing_original"):
        ops.Graph.get_tensor_by_name = _by_name(ops.Graph.get_tensor_by_name)


def _by_name(original: Any) -> Any:
    from moxing.tf1.graph.variable_fetches import fetched_value

    @functools.wraps(original)
    def get_tensor_by_name(self: Any, name: str) -> Any:
        tensor = original(self, name)
        if name == _GLOBAL_STEP:
            # Supervisors and monitored sessions look for it by this name, and expect a whole number.
            return next((one for one in self.get_collection("variables") if one.name == name), fetched_value(tensor))
        # Otherwise TensorFlow itself needs the handle.
        return fetched_value(tensor) if USER_MARK in sys._getframe(1).f_builtins else tensor

    get_tensor_by_name._moxing_original = original  # type: ignore[attr-defined]
    return get_tensor_by_name
