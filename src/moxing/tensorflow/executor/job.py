"""The job that a run is part of: a process that runs alone, or one process of a cluster."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster import Role, RoleError, current_role
from moxing.tensorflow.cluster.ring import Ring, RingBrokenError, connect_ring
from moxing.tensorflow.cluster.server import Server, process_server, restart_advice
from moxing.tensorflow.cluster.waiting import PeerLostError
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.loop.session import session_config
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.parallel.collective import set_collective_leader
from moxing.tensorflow.parallel.devices import tower_devices

#: Seconds after a network error of TensorFlow, which names no peer, in which the peer watch names the dead one.
_SECONDS_TO_NAME_PEER = 27.0

_NETWORK_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
)

#: Numbers the runs of this process in a cluster. All workers run the same script: a number means the same run on all.
_run_numbers = itertools.count(1)


@dataclass(eq=False)
class Job:
    """What a run needs of the other processes. For a process that runs alone, all methods do nothing.

    Attributes:
      role: the role of this process.
      server: its server; None if it runs alone.
      run_number: number of the run in this process.
    """

    role: Role
    server: Server | None = None
    run_number: int = 0
    _ring: Ring | None = field(default=None, init=False)
    _announced: int = field(default=0, init=False)

    @property
    def target(self) -> str:
        """The target of the session."""
        return "" if self.server is None else self.server.target

    @property
    def is_cluster(self) -> bool:
        """Whether the run is one of several processes."""
        return self.server is not None

    def broadcast_start(self, seed: int, position: Position) -> tuple[int, Position]:
        """Returns the chief's seed and input position: the shards of all workers must come from the same order.

        Args:
          seed: the seed of this process.
          position: the input position of this process.
        """
        if self.server is None:
            return seed, position
        key = self._key("start")
        if self.role.is_chief:
            self.server.messages.broadcast(key, {"seed": seed, "position": asdict(position)})
            return seed, position
        start = self.server.messages.receive(key)
        chiefs = start["position"]
        tuples = {name: tuple(chiefs[name]) for name in ("samples", "sizes")}
        return start["seed"], replace(START, **{**chiefs, **tuples})

    def wait_for_variables(self) -> None:
        """The chief reports that the variables have their values; the others wait for that."""
        if self.server is None:
            return
        if self.role.is_chief:
            self.server.messages.broadcast(self._key("ready"), True)
        else:
            self.server.messages.receive(self._key("ready"))

    def any_worker(self, key: str, value: bool) -> bool:
        """Whether the value of any worker is true; the same result on all."""
        return value if self.server is None else self.server.messages.any_worker(self._key(key), value)

    def all_gather(self, key: str, value: Any) -> list[Any]:
        """Returns the values of all workers; the same list on all."""
        return [value] if self.server is None else self.server.messages.all_gather(self._key(key), value)

    def announce(self, decision: dict[str, Any]) -> None:
        """The chief sends a decision to the other workers; for asynchronous workers."""
        if self.server is not None:
            self._announced += 1
            self.server.messages.broadcast(self._key(f"announced/{self._announced}"), decision)

    def announcements(self) -> Iterator[dict[str, Any]]:
        """The decisions that the chief has announced since the last call."""
        while decision := self._received(f"announced/{self._announced + 1}"):
            self._announced += 1
            yield decision

    def connect_ring(self) -> Ring | None:
        """Connects all workers to a ring for all-reduce; returns None if one connection failed."""
        server, role = self.server, self.role
        if server is None:
            return None
        previous, following = (f"worker {(role.index + offset) % role.num_workers}" for offset in (-1, 1))
        key = self._key("ring")
        ring = connect_ring(
            role.index,
            role.workers,
            send=lambda listener: server.messages.send(previous, key, listener),
            receive=lambda: server.messages.receive(key, sender=following),
        )
        if self.any_worker("no_ring", ring is None):
            tf.logging.warning(
                "Between some workers only the ports of --worker_hosts are open: gradients use TensorFlow's collective "
                "operations, which are slower."
            )
            if ring is not None:
                ring.close()
            return None
        self._ring = ring
        return ring

    def stop_all(self) -> None:
        """Asks the other workers to stop; for asynchronous workers."""
        if self.server is not None:
            self.server.messages.broadcast(self._key("stop"), True)

    def stop_requested(self) -> bool:
        """Whether another worker has called `stop_all`."""
        return bool(self._received("stop"))

    def wait_for_last_steps(self) -> None:
        """The chief waits until no worker does steps any more; the others do not wait."""
        if self.server is not None:
            self.server.messages.chief_barrier(self._key("done"))

    @contextmanager
    def watch_peers(self, session: tf.Session) -> Iterator[None]:
        """In this context, the death of another process interrupts the session with an error that names it."""
        if self.server is None:
            yield
            return

        def interrupt() -> None:
            # Closing the session does not end an operation that waits for a neighbor in the ring.
            if self._ring is not None:
                self._ring.close()
            session.close()

        with self.server.on_peer_lost(interrupt):
            try:
                yield
                self.server.end_run()
            except (tf.errors.OutOfRangeError, PeerLostError):
                raise
            except (tf.errors.OpError, RuntimeError) as error:
                self._check_peers(self.server, error)
                raise
            finally:
                if self._ring is not None:
                    self._ring.close()

    def _check_peers(self, server: Server, error: BaseException) -> None:
        """Raises an error that names a dead peer, if that is the cause of `error`."""
        of_network = isinstance(error, _NETWORK_ERRORS) or RingBrokenError.__name__ in str(error)
        until = time.monotonic() + (_SECONDS_TO_NAME_PEER if of_network else 0)
        while server.loss is None and time.monotonic() < until:
            time.sleep(0.1)
        if server.loss is not None:
            # TensorFlow's own error says less, in dozens of lines.
            raise PeerLostError(server.loss) from None
        peer = _remote_peer(error) if of_network else None
        if peer in self.role.peers:
            # The peer is back, but the operation is lost.
            raise PeerLostError(
                f"The connection of {self.role.name} to {peer} ({self.role.peers[peer]}) has broken.{restart_advice()}"
            ) from None

    def _received(self, key: str) -> Any:
        return None if self.server is None else self.server.messages.received(self._key(key))

    def _key(self, key: str) -> str:
        return f"run_{self.run_number}/{key}"


def _remote_peer(error: BaseException) -> str | None:
    """The process at the other end of the connection that an error is about."""
    if broken := re.search(r"RingBrokenError: .* to (worker \d+) has broken", str(error)):
        return broken[1]
    found = re.search(r"remote target /job:(\w+)/replica:\d+/task:(\d+)", str(error))
    return None if found is None else "controller" if found[1] == "controller" else f"{found[1]} {found[2]}"


def join_job(mode: ModeKeys) -> Job | None:
    """Joins the job of this process; returns None if this process takes no part in the run.

    A ps or controller serves until all workers have left, and then ends the process.

    Args:
      mode: all workers take part in TRAIN, only the chief in other modes.
    """
    role = current_role()
    if role.job == "evaluator" and role.origin == "--job_name":
        raise RoleError(
            "mox.run in an evaluator process (moxing run --evaluator, --job_name=evaluator): only "
            "tf.estimator.train_and_evaluate has one. Leave the evaluator out; mox.run evaluates inside the training "
            "with inter_mode."
        )
    if role.job == "evaluator":
        return None if mode is ModeKeys.TRAIN else Job(Role())
    if not role.is_cluster:
        return Job(role)
    if role.job != "worker":
        if mode is not ModeKeys.TRAIN:
            return None
        server = process_server(role, session_config())
        server.wait_for_peers()
        server.serve()
        raise SystemExit(0)
    if mode is not ModeKeys.TRAIN:
        return Job(Role()) if role.is_chief else None
    config = session_config(tower_devices(warn=False))
    if role.num_workers > 1:
        set_collective_leader(config)
    server = process_server(role, config)
    server.wait_for_peers()
    server.begin_run()
    return Job(role, server, next(_run_numbers))
