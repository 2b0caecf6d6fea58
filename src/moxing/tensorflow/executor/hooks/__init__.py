"""Hooks: what happens beside the steps. One file a hook; those that users name are exported here."""

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.feed import FeedSessionRunHook

__all__ = ["AggregativeSessionRunHook", "FeedSessionRunHook"]
