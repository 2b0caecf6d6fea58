"""Hooks: what happens beside the steps. One file a hook; those that users name are exported here."""

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.early_stopping import EarlyStoppingHook
from moxing.tensorflow.executor.hooks.feed import FeedSessionRunHook
from moxing.tensorflow.executor.hooks.log_evaluation import LogEvaluationMetricHook
from moxing.tensorflow.executor.hooks.plateau import PlateauLREarlyStoppingHook

__all__ = [
    "AggregativeSessionRunHook",
    "EarlyStoppingHook",
    "FeedSessionRunHook",
    "LogEvaluationMetricHook",
    "PlateauLREarlyStoppingHook",
]
