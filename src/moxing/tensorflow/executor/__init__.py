"""`mox.run` and everything that it needs.

`run.py` is the run itself; `config.py` checks its arguments; `job.py` joins the other processes; `build/` builds the
graph; `loop/` opens the session and runs the steps; `actions/` is what happens between steps; `hooks/` is what users
pass; `evaluation/` evaluates inside training; `checkpoints/` chooses, writes and restores; `store/` serves URLs;
`export.py` writes SavedModels. Import the names below from here.
"""

from moxing.tensorflow.executor.actions.action import NotFiniteError
from moxing.tensorflow.executor.build.model import get_collection
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
from moxing.tensorflow.executor.hooks.throughput import ThroughputHook
from moxing.tensorflow.executor.run import run
from moxing.tensorflow.executor.specs import ExportKeys, ExportSpec, InputSpec, ModeKeys, ModelSpec, RunResult
from moxing.tensorflow.executor.store.uploads import UploadError
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
