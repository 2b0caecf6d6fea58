"""Running a model: `run`, the specs that callbacks return, flags, hooks."""

from moxing.tensorflow.executor.collections import get_collection
from moxing.tensorflow.executor.export import ExportError
from moxing.tensorflow.executor.flags import get_flag, set_flag
from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.early_stopping import EarlyStoppingHook
from moxing.tensorflow.executor.hooks.log_evaluation import LogEvaluationMetricHook
from moxing.tensorflow.executor.hooks.plateau import PlateauLREarlyStoppingHook
from moxing.tensorflow.executor.hooks.save import NotFiniteError
from moxing.tensorflow.executor.run import run
from moxing.tensorflow.executor.specs import ExportKeys, ExportSpec, InputSpec, ModeKeys, ModelSpec, RunResult
from moxing.tensorflow.executor.var_scope import var_scope

__all__ = [
    "AggregativeSessionRunHook",
    "EarlyStoppingHook",
    "ExportError",
    "ExportKeys",
    "ExportSpec",
    "InputSpec",
    "LogEvaluationMetricHook",
    "ModeKeys",
    "ModelSpec",
    "NotFiniteError",
    "PlateauLREarlyStoppingHook",
    "RunResult",
    "get_collection",
    "get_flag",
    "run",
    "set_flag",
    "var_scope",
]
