"""The base class of MoXing hooks."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


class AggregativeSessionRunHook(tf.train.SessionRunHook):
    """A `tf.train.SessionRunHook` that also says how it behaves with several towers and workers.

    Subclasses define the three methods below, each returning a bool, and override what they need of `begin`,
    `after_create_session`, `before_run`, `after_run` and `end`.

    Example:
      >>> class Quiet(AggregativeSessionRunHook):
      ...     def support_aggregation(self): return False
      ...     def support_sync_workers(self): return False
      ...     def run_inter_mode(self): return False
      >>> Quiet().run_inter_mode()
      False
    """

    def support_aggregation(self) -> bool:
        """True: one instance serves all towers and sees averages; False: one instance per tower."""
        raise TypeError(f"{type(self).__name__} must define support_aggregation(), returning True or False.")

    def support_sync_workers(self) -> bool:
        """True: all workers run it at the same step and agree on its decision."""
        raise TypeError(f"{type(self).__name__} must define support_sync_workers(), returning True or False.")

    def run_inter_mode(self) -> bool:
        """True: its fetches come from the `inter_mode` graph."""
        raise TypeError(f"{type(self).__name__} must define run_inter_mode(), returning True or False.")
