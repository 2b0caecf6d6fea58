"""The session of a run: created, initialised, restored; closed with everything that belongs to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks


def session_config() -> tf.ConfigProto:
    """The session's settings, from the flags.

    Example:
      >>> session_config().allow_soft_placement
      True
    """
    config = tf.ConfigProto(
        allow_soft_placement=True,
        inter_op_parallelism_threads=FLAGS.get("num_inter_threads"),
        intra_op_parallelism_threads=FLAGS.get("num_intra_threads"),
    )
    config.gpu_options.allow_growth = True
    return config


@contextmanager
def open_session(
    restore: Callable[[tf.Session], None] | None, initializers: Sequence[tf.Operation], hooks: UserHooks
) -> Iterator[tf.Session]:
    """A session in which variables have their values, tables are filled and queues run.

    Args:
      restore: loads variables from a checkpoint.
      initializers: of the run's own input.
      hooks: told when the session is ready.
    """
    initialize = [tf.global_variables_initializer(), tf.local_variables_initializer()]
    coordinator = tf.train.Coordinator()
    with tf.Session(config=session_config()) as session:
        session.run(initialize)
        session.run(tf.tables_initializer())
        if restore is not None:
            restore(session)
        session.run(list(initializers))
        threads: list[threading.Thread] = []
        try:
            # Queues may draw on iterators that a hook initialises.
            hooks.after_create_session(session, coordinator)
            if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                threads = tf.train.start_queue_runners(session, coordinator)
            yield session
        finally:
            coordinator.request_stop()
            if threads:
                coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
