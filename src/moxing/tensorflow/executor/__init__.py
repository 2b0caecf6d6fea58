"""Running a model: `run`, the specs that callbacks return, flags, hooks."""

from moxing.tensorflow.executor.collections import get_collection
from moxing.tensorflow.executor.export import ExportError
from moxing.tensorflow.executor.flags import get_flag, set_flag
from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.best_checkpoint import BestCheckpointHook
from moxing.tensorflow.executor.hooks.early_stopping import EarlyStoppingHook
from moxing.tensorflow.executor.hooks.gradient_norm import GradientNormHook
from moxing.tensorflow.executor.hooks.log_evaluation import LogEvaluationMetricHook
from moxing.tensorflow.executor.hooks.nan_guard import NanGuardHook
from moxing.tensorflow.executor.hooks.plateau import PlateauLREarlyStoppingHook
from moxing.tensorflow.executor.hooks.profiler import ProfilerHook
from moxing.tensorflow.executor.hooks.run_end import RunEndHook
from moxing.tensorflow.executor.hooks.save import NotFiniteError
from moxing.tensorflow.executor.hooks.throughput import ThroughputHook
from moxing.tensorflow.executor.run import run
from moxing.tensorflow.executor.specs import ExportKeys, ExportSpec, InputSpec, ModeKeys, ModelSpec, RunResult
from moxing.tensorflow.executor.uploads import UploadError
from moxing.tensorflow.executor.var_scope import var_scope

__all__ = [
    "AggregativeSessionRunHook",
    "BestCheckpointHook",
    "EarlyStoppingHook",
    "ExportError",
    "ExportKeys",
    "ExportSpec",
    "GradientNormHook",
    "InputSpec",
    "LogEvaluationMetricHook",
    "ModeKeys",
    "ModelSpec",
    "NanGuardHook",
    "NotFiniteError",
    "PlateauLREarlyStoppingHook",
    "ProfilerHook",
    "RunEndHook",
    "RunResult",
    "ThroughputHook",
    "UploadError",
    "get_collection",
    "get_flag",
    "run",
    "set_flag",
    "var_scope",
]
