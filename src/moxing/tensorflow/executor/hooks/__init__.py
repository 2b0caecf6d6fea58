"""Hooks that users pass in `ModelSpec(hooks=[...])`; one hook a file.

`AggregativeSessionRunHook` is the base class of the original API. `RunHook` (`run_hook.py`) and `EvaluationHook`
(`evaluation.py`) are ours: the run serves them between steps, so the steps still run many per call. `user_hooks.py`
runs the hooks around the steps. Import hooks from here; users write `mox.EarlyStoppingHook` and so on.
"""

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.best_checkpoint import BestCheckpointHook
from moxing.tensorflow.executor.hooks.early_stopping import EarlyStoppingHook
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.hooks.feed import FeedSessionRunHook
from moxing.tensorflow.executor.hooks.gradient_norm import GradientNormHook
from moxing.tensorflow.executor.hooks.log_evaluation import LogEvaluationMetricHook
from moxing.tensorflow.executor.hooks.nan_guard import NanGuardHook
from moxing.tensorflow.executor.hooks.plateau import PlateauLREarlyStoppingHook
from moxing.tensorflow.executor.hooks.profiler import ProfilerHook
from moxing.tensorflow.executor.hooks.run_end import RunEndHook
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.hooks.throughput import ThroughputHook

__all__ = [
    "AggregativeSessionRunHook",
    "BestCheckpointHook",
    "EarlyStoppingHook",
    "EvaluationHook",
    "FeedSessionRunHook",
    "GradientNormHook",
    "LogEvaluationMetricHook",
    "NanGuardHook",
    "PlateauLREarlyStoppingHook",
    "ProfilerHook",
    "RunEndHook",
    "RunHook",
    "ThroughputHook",
]
