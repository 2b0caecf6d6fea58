"""The session of a run: configured, created, initialised, restored, and closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS

if TYPE_CHECKING:  # for types only: the imports would be circular
    from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
    from moxing.tensorflow.executor.job import Job
    from moxing.tensorflow.parallel import Strategy


@contextmanager
def open_session(
    restore: Callable[[tf.Session], None] | None,
    initializers: Sequence[tf.Operation],
    hooks: UserHooks,
    strategy: Strategy | None = None,
    job: Job | None = None,
) -> Iterator[tf.Session]:
    """Opens a session with initialised variables, filled tables and running queues.

    Args:
      restore: loads variables from a checkpoint.
      initializers: the initializers of the run's own input and counters.
      hooks: notified when the session is ready.
      strategy: places variables and devices; None for one model without training.
      job: the processes that take part; None for this one alone.
    """
    cluster = job if job is not None and job.is_cluster else None
    owns_variables = strategy is None or strategy.owns_variables
    initialize = [tf.global_variables_initializer()] if owns_variables else []
    initialize += [tf.local_variables_initializer()]
    fill_tables = tf.tables_initializer()
    # In a cluster the devices are those of the server.
    config = session_config(strategy.devices if strategy is not None and cluster is None else ())
    sync, worker_sync = [], []
    if strategy is not None:
        sync, worker_sync = strategy.sync_ops(), strategy.worker_sync_ops()
        strategy.configure(config)
    coordinator = tf.train.Coordinator()
    watch = cluster.watch_peers if cluster is not None else nullcontext
    with tf.Session(cluster.target if cluster is not None else "", config=config) as session, watch(session):
        session.run(initialize)
        session.run(fill_tables)
        if restore is not None:
            restore(session)
        session.run(list(initializers))
        threads: list[threading.Thread] = []
        try:
            # Before the queues and the copies of variables: hooks may initialise iterators and assign variables.
            hooks.after_create_session(session, coordinator)
            if owns_variables:
                session.run(sync)
            if cluster is not None:
                cluster.wait_for_variables()
            session.run(worker_sync)
            if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                threads = tf.train.start_queue_runners(session, coordinator)
            yield session
        finally:
            coordinator.request_stop()
            if threads:
                coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)


def session_config(devices: Sequence[str] = ()) -> tf.ConfigProto:
    """The settings of a session or server, from the flags.

    Args:
      devices: the devices of the towers. If they are CPUs, there is a logical CPU device for every tower.

    Example:
      >>> session_config(['/cpu:0', '/cpu:1']).device_count['CPU']
      2
    """
    config = tf.ConfigProto(
        allow_soft_placement=True,
        inter_op_parallelism_threads=FLAGS.get("num_inter_threads"),
        intra_op_parallelism_threads=FLAGS.get("num_intra_threads"),
    )
    config.gpu_options.allow_growth = True
    if devices and devices[0].startswith("/cpu"):
        config.device_count["CPU"] = len(devices)
    return config
