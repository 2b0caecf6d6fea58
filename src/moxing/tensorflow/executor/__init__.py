"""Running a model: `run`, the specs that callbacks return, flags, hooks."""

from moxing.tensorflow.executor.collections import get_collection
from moxing.tensorflow.executor.export import ExportError
from moxing.tensorflow.executor.flags import get_flag, set_flag
from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.save import NotFiniteError
from moxing.tensorflow.executor.run import run
from moxing.tensorflow.executor.specs import ExportKeys, ExportSpec, InputSpec, ModeKeys, ModelSpec, RunResult
from moxing.tensorflow.executor.var_scope import var_scope

__all__ = [
    "AggregativeSessionRunHook",
    "ExportError",
    "ExportKeys",
    "ExportSpec",
    "InputSpec",
    "ModeKeys",
    "ModelSpec",
    "NotFiniteError",
    "RunResult",
    "get_collection",
    "get_flag",
    "run",
    "set_flag",
    "var_scope",
]
