"""Waiting for other processes: logs now and then who is missing and why, and gives up after `--session_timeout`."""

from __future__ import annotations

import time
from collections.abc import Mapping

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import connectivity
from moxing.tensorflow.cluster.roles import Role

POLL_SECONDS = 0.2


class PeerLostError(RuntimeError):
    """Another process of the job has died or cannot be reached any more."""


class PeerWait:
    """One wait for other processes, from its creation on.

    Args:
      role: the role of the process that waits.
    """

    def __init__(self, role: Role) -> None:
        self._role, self._started = role, time.monotonic()
        self._next_message = self._started + connectivity.WAIT_MESSAGE_AFTER
        self._timeout = FLAGS.get("session_timeout")

    def poll(self, missing: Mapping[str, str]) -> None:
        """Sleeps for one polling interval.

        Args:
          missing: the peers that cannot be reached or have not joined, with the reason.

        Raises:
          PeerLostError: `--session_timeout` has passed.
        """
        now = time.monotonic()
        if self._timeout and now - self._started > self._timeout:
            raise PeerLostError(
                f"--session_timeout={self._timeout}: after {self._timeout} s\n"
                f"{connectivity.explain(self._role, missing)}"
            )
        if now > self._next_message:
            self._next_message = now + connectivity.WAIT_MESSAGE_EVERY
            outlook = "keeps waiting; --session_timeout=SECONDS makes it give up"
            if self._timeout:
                outlook = f"gives up after --session_timeout={self._timeout}"
            tf.logging.warning(
                "%s is waiting.\n%s\nIt has waited for %.0f s and %s.",
                self._role.name,
                connectivity.explain(self._role, missing),
                now - self._started,
                outlook,
            )
        time.sleep(POLL_SECONDS)
