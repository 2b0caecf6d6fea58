"""The session of a run: created, initialised, restored; closed with everything that belongs to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster import Role
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
from moxing.tensorflow.executor.job import Job
from moxing.tensorflow.executor.session_config import session_config
from moxing.tensorflow.parallel import Strategy


@contextmanager
def open_session(
    restore: Callable[[tf.Session], None] | None,
    initializers: Sequence[tf.Operation],
    hooks: UserHooks,
    strategy: Strategy | None = None,
    job: Job | None = None,
) -> Iterator[tf.Session]:
    """A session in which variables have their values, tables are filled and queues run.

    Args:
      restore: loads variables from a checkpoint.
      initializers: of the run's own input.
      hooks: told when the session is ready.
      strategy: how the towers of the graph share their variables; None where there is one model without training.
      job: the processes that take part; None where it is this one alone.
    """
    strategy, job = strategy or Strategy([]), job or Job(Role())
    config = session_config()
    strategy.configure(config)
    initialize = [tf.global_variables_initializer()] if strategy.owns_variables else []
    initialize += [tf.local_variables_initializer()]
    fill_tables, ready, own = tf.tables_initializer(), strategy.ready(), strategy.own_values()
    coordinator = tf.train.Coordinator()
    with tf.Session(job.target, config=config) as session, job.watched(session):
        session.run(initialize)
        session.run(fill_tables)
        if restore is not None:
            restore(session)
        session.run(list(initializers))
        threads: list[threading.Thread] = []
        try:
            # Queues may draw on iterators that a hook initialises, and copies of variables on what it assigns.
            hooks.after_create_session(session, coordinator)
            if strategy.owns_variables:
                session.run(ready)
            job.variables_are_ready()
            session.run(own)
            if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                threads = tf.train.start_queue_runners(session, coordinator)
            yield session
        finally:
            coordinator.request_stop()
            if threads:
                coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
