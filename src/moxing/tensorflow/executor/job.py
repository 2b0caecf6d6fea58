"""The job that a run is part of: a process by itself, or one of a cluster."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster import Role, current_role
from moxing.tensorflow.cluster.ring import Ring, RingBrokenError, connected
from moxing.tensorflow.cluster.server import PeerLostError, Server, restart_advice, server_of
from moxing.tensorflow.executor.checkpoint import START, Position
from moxing.tensorflow.executor.session_config import session_config
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.parallel.collective import lead_collectives
from moxing.tensorflow.parallel.devices import logical_cpus, tower_devices

#: A dead peer is named by the watch within this time after TensorFlow's own error, which names none.
_SECONDS_TO_NAME = 27.0

_OF_NETWORK = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
)

#: The runs of this process that were a cluster's. All workers run the same script: a number means the same run on all.
_numbers = itertools.count(1)


class Job:
    """What a run needs of the processes around it; alone it does nothing.

    Args:
      role: who this process is.
      server: its server; None where the run is one process.
      number: which run of this process it is.
    """

    def __init__(self, role: Role, server: Server | None = None, number: int = 0) -> None:
        self.role, self.number = role, number
        self._server = server
        self._ring: Ring | None = None
        self._announced = 0

    @property
    def target(self) -> str:
        """Of the session."""
        return "" if self._server is None else self._server.target

    @property
    def is_cluster(self) -> bool:
        """True when other workers take part."""
        return self._server is not None

    def agreed(self, seed: int, position: Position) -> tuple[int, Position]:
        """Seed and place in the data as the chief says: the workers' parts must be parts of the same order.

        Args:
          seed: this process's.
          position: this process's.
        """
        if self._server is None:
            return seed, position
        key = self._key("start")
        if self.role.is_chief:
            self._server.tell_all_workers(key, {"seed": seed, "position": asdict(position)})
            return seed, position
        told = self._server.wait_until_told(key)
        place = told["position"]
        return told["seed"], replace(START, **{**place, "samples": tuple(place["samples"])})

    def variables_are_ready(self) -> None:
        """The chief tells that the variables have their values; the others wait for it."""
        if self._server is None:
            return
        if self.role.is_chief:
            self._server.tell_all_workers(self._key("ready"), True)
        else:
            self._server.wait_until_told(self._key("ready"))

    def any_worker(self, what: str, own: bool) -> bool:
        """Whether one of the workers says true to `what`; all ask and are told the same."""
        return own if self._server is None else self._server.any_worker(self._key(what), own)

    def everyones(self, what: str, own: Any) -> list[Any]:
        """What all workers say to `what`, the same list for each of them."""
        return [own] if self._server is None else self._server.everyones(self._key(what), own)

    def announce(self, what: dict[str, Any]) -> None:
        """The chief tells the others what it has decided, where each worker does steps of its own."""
        if self._server is not None:
            self._announced += 1
            self._server.tell_all_workers(self._key(f"announced/{self._announced}"), what)

    def announced(self) -> Iterator[dict[str, Any]]:
        """What the chief has announced since the last time this was asked."""
        while self._server is not None and (what := self._server.told(self._key(f"announced/{self._announced + 1}"))):
            self._announced += 1
            yield what

    def ring(self) -> Ring | None:
        """Connections around all workers, for what they add up; None where one of them could not be made."""
        server, role = self._server, self.role
        if server is None:
            return None
        before, following = (f"worker {(role.index + way) % role.num_workers}" for way in (-1, 1))
        key = self._key("ring")
        own = connected(
            role.index,
            role.workers,
            tell=lambda where: server.tell(before, key, where),
            told=lambda: server.wait_until_told(key, by=following),
        )
        if self.any_worker("no_ring", own is None):
            tf.logging.warning(
                "Between some workers only the ports of --worker_hosts are open: the gradients go through TensorFlow's "
                "own collectives, which takes longer."
            )
            if own is not None:
                own.close()
            return None
        self._ring = own
        return own

    def stop_all(self) -> None:
        """Asks the other workers to stop, where each decides for itself."""
        if self._server is not None:
            self._server.tell_all_workers(self._key("stop"), True)

    def is_asked_to_stop(self) -> bool:
        """Whether another worker wants this one to stop."""
        return self._server is not None and bool(self._server.told(self._key("stop")))

    def steps_are_done(self) -> None:
        """The chief goes on when no worker does steps any more."""
        if self._server is not None:
            self._server.meet_at_chief(self._key("done"))

    @contextmanager
    def watched(self, session: tf.Session) -> Iterator[None]:
        """Inside, the death of another process ends what the session does, with an error that names it."""
        if self._server is None:
            yield
            return

        def interrupt() -> None:
            # An operation that waits for a neighbour in the ring is not reached by the session's end.
            if self._ring is not None:
                self._ring.close()
            session.close()

        with self._server.interrupting(interrupt):
            try:
                yield
                self._server.in_run = False
            except (tf.errors.OutOfRangeError, PeerLostError):
                raise
            except (tf.errors.OpError, RuntimeError) as error:
                self._check(self._server, error)
                raise
            finally:
                if self._ring is not None:
                    self._ring.close()

    def _check(self, server: Server, error: BaseException) -> None:
        """Raises an error that names a dead peer, if that is what is behind `error`."""
        of_network = isinstance(error, _OF_NETWORK) or RingBrokenError.__name__ in str(error)
        until = time.monotonic() + (_SECONDS_TO_NAME if of_network else 0)
        while server.loss is None and time.monotonic() < until:
            time.sleep(0.1)
        if server.loss is not None:
            # TensorFlow's own error says less, in dozens of lines.
            raise PeerLostError(server.loss) from None
        peer = _remote(error) if of_network else None
        if peer in self.role.peers:
            # It is there again, and what was under way is lost all the same.
            raise PeerLostError(
                f"The connection of {self.role.name} to {peer} ({self.role.peers[peer]}) has broken.{restart_advice()}"
            ) from None

    def _key(self, what: str) -> str:
        return f"run_{self.number}/{what}"


def _remote(error: BaseException) -> str | None:
    """The process that the error says this one was talking to."""
    if broken := re.search(r"RingBrokenError: .* to (worker \d+) has broken", str(error)):
        return broken[1]
    found = re.search(r"remote target /job:(\w+)/replica:\d+/task:(\d+)", str(error))
    return None if found is None else "controller" if found[1] == "controller" else f"{found[1]} {found[2]}"


def join_job(mode: ModeKeys) -> Job | None:
    """This process's part in the job; None when it has none in this run.

    A ps or controller serves in here until all workers are done, and then ends the process.

    Args:
      mode: training is done by all workers, everything else by the chief alone.
    """
    role = current_role()
    if role.job == "evaluator":
        return None if mode is ModeKeys.TRAIN else Job(Role())
    if not role.is_cluster:
        return Job(role)
    if role.job != "worker":
        if mode is not ModeKeys.TRAIN:
            return None
        server = server_of(role, session_config())
        server.wait_for_peers()
        server.serve()
        raise SystemExit(0)
    if mode is not ModeKeys.TRAIN:
        return Job(Role()) if role.is_chief else None
    config = session_config()
    logical_cpus(config, tower_devices(tell=False))
    if role.num_workers > 1:
        lead_collectives(config)
    server = server_of(role, config)
    server.wait_for_peers()
    server.in_run = True
    return Job(role, server, next(_numbers))
