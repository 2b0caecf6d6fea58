"""The base class of MoXing hooks."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


class AggregativeSessionRunHook(tf.train.SessionRunHook):
    """A `tf.train.SessionRunHook` that knows about towers, workers and `inter_mode`.

    Subclasses define the three methods below, each returning a bool, and override `begin`, `after_create_session`,
    `before_run`, `after_run` and `end` as needed.

    Example:
      >>> class Quiet(AggregativeSessionRunHook):
      ...     def support_aggregation(self): return False
      ...     def support_sync_workers(self): return False
      ...     def run_inter_mode(self): return False
      >>> Quiet().run_inter_mode()
      False
    """

    def support_aggregation(self) -> bool:
        """True: one hook serves all towers and sees averages. False: each tower has its own."""
        raise TypeError(f"{type(self).__name__} must define support_aggregation(), returning True or False.")

    def support_sync_workers(self) -> bool:
        """True: all workers run the hook at the same step and agree on its decision."""
        raise TypeError(f"{type(self).__name__} must define support_sync_workers(), returning True or False.")

    def run_inter_mode(self) -> bool:
        """True: the hook runs on the model in `inter_mode`."""
        raise TypeError(f"{type(self).__name__} must define run_inter_mode(), returning True or False.")
