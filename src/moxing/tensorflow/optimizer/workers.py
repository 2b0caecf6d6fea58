"""What an optimizer may know of the cluster: how many workers there are, and which one this is."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS


def num_workers() -> int:
    """How many workers the flags name; 1 outside a cluster.

    Example:
      >>> num_workers()
      1
    """
    hosts = (FLAGS.get("worker_hosts") or "").strip().rstrip(",")
    return len(hosts.split(",")) if hosts else 1


def task_index() -> int:
    """Which of the workers this is.

    Example:
      >>> task_index()
      0
    """
    return FLAGS.get("task_index") or 0


def is_cluster() -> bool:
    """True where the job is more than this process.

    Example:
      >>> is_cluster()
      False
    """
    return num_workers() > 1 or bool(FLAGS.get("ps_hosts")) or bool(FLAGS.get("controller_host"))


def task_device() -> str:
    """Where this worker's own variables stand.

    Example:
      >>> task_device()
      '/job:worker/task:0/cpu:0'
    """
    return f"/job:worker/task:{task_index()}/cpu:0"


def warn_of_sync_replicas() -> None:
    """Says what the manual says of wrappers where workers go in step anyway."""
    if FLAGS.get("sync_replicas") and is_cluster():
        tf.logging.warning("Using OptimizerWrapper when sync_replicas is True may cause performance loss.")
