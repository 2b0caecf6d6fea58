"""The cluster as an optimizer sees it: the number of workers, and which one this is."""

from __future__ import annotations

import re

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.optimizer.step_context import current_context


def num_workers() -> int | None:
    """Returns the number of workers: that of the run (from flags, TF_CONFIG or Slurm), else that of the flags.

    Returns:
      None if unknown.

    Example:
      >>> print(num_workers())
      None
    """
    if (known := current_context().workers) is not None:
        return known
    hosts = (FLAGS.get("worker_hosts") or "").strip().rstrip(",")
    return len(hosts.split(",")) if hosts else None


def task_device() -> str | None:
    """Returns the device of this worker's own variables; None outside of a cluster.

    Example:
      >>> with tf.Graph().as_default(), tf.device('/job:worker/task:1/gpu:0'):
      ...     task_device()
      '/job:worker/task:1/cpu:0'
    """
    if tf.executing_eagerly():
        return None
    # From the placement of operations, not from a flag: TF_CONFIG and Slurm define clusters too.
    with tf.init_scope(), tf.name_scope(None):
        found = re.search(r"/job:\w+(/replica:\d+)?/task:\d+", tf.no_op(name="moxing/where").device)
    return f"{found.group()}/cpu:0" if found else None


def task_index() -> int:
    """Returns the index of this worker.

    Example:
      >>> with tf.Graph().as_default(), tf.device('/job:worker/task:1'):
      ...     task_index()
      1
    """
    device = task_device()
    return int(re.search(r"task:(\d+)", device).group(1)) if device else 0  # type: ignore[union-attr]


def warn_of_sync_replicas() -> None:
    """Logs the warning of the manual about wrappers in a job with `--sync_replicas=True`."""
    if FLAGS.get("sync_replicas") and task_device() is not None:
        tf.logging.warning("Using OptimizerWrapper when sync_replicas is True may cause performance loss.")
