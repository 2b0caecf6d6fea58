"""Feeds placeholders of `model_fn`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook


class FeedSessionRunHook(AggregativeSessionRunHook):
    """Feeds placeholders in every step.

    Args:
      feed_dict: values by placeholder.

    Example:
      >>> with tf.Graph().as_default():
      ...     x = tf.placeholder(tf.float32)
      ...     hook = FeedSessionRunHook(feed_dict={x: 1.0})
      >>> hook.support_aggregation()
      False
    """

    def __init__(self, feed_dict: Mapping[Any, Any]) -> None:
        super().__init__()
        self.feed_dict = feed_dict

    def before_run(self, run_context: Any) -> Any:
        if not self.feed_dict:
            return None
        return tf.train.SessionRunArgs(fetches=None, feed_dict=self.feed_dict)

    def support_aggregation(self) -> bool:
        return False

    def support_sync_workers(self) -> bool:
        return False

    def run_inter_mode(self) -> bool:
        return False
