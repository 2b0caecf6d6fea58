"""What an optimizer may know of the cluster: how many workers there are, and which one this is."""

from __future__ import annotations

import re

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.optimizer.surroundings import surroundings


def num_workers() -> int | None:
    """How many workers there are: as the run says, which TF_CONFIG or Slurm may have told it, else as the flags do.

    Returns:
      None where neither does.

    Example:
      >>> print(num_workers())
      None
    """
    if (known := surroundings().workers) is not None:
        return known
    hosts = (FLAGS.get("worker_hosts") or "").strip().rstrip(",")
    return len(hosts.split(",")) if hosts else None


def task_device() -> str | None:
    """The device of this worker's own variables; None outside a cluster.

    Example:
      >>> with tf.Graph().as_default(), tf.device('/job:worker/task:1/gpu:0'):
      ...     task_device()
      '/job:worker/task:1/cpu:0'
    """
    if tf.executing_eagerly():
        return None
    # By where operations go, and not by a flag: TF_CONFIG, Slurm and others make clusters too.
    with tf.init_scope(), tf.name_scope(None):
        found = re.search(r"/job:\w+(/replica:\d+)?/task:\d+", tf.no_op(name="moxing/where").device)
    return f"{found.group()}/cpu:0" if found else None


def task_index() -> int:
    """Which of the workers this is.

    Example:
      >>> with tf.Graph().as_default(), tf.device('/job:worker/task:1'):
      ...     task_index()
      1
    """
    device = task_device()
    return int(re.search(r"task:(\d+)", device).group(1)) if device else 0  # type: ignore[union-attr]


def warn_of_sync_replicas() -> None:
    """Says what the manual says of wrappers where workers go in step anyway."""
    if FLAGS.get("sync_replicas") and task_device() is not None:
        tf.logging.warning("Using OptimizerWrapper when sync_replicas is True may cause performance loss.")
