"""This process's TensorFlow server, and what the processes of a job tell each other through it.

Every process has a board: named texts, kept as variables of its server, which any other process can write to. They go
through the port that the job has anyway, so that no second one needs to be open. What stands there:

- a process that ends well writes a goodbye on the boards of the others before its port closes. A port that closes
  without it is a death;
- the chief writes down what the workers must know before they build anything: the seed and the place in the data.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import reach
from moxing.tensorflow.cluster.peers import PeerWatch
from moxing.tensorflow.cluster.roles import Role

_CHIEF = "worker 0"
_POLL_SECONDS = 0.2
#: How long a process may take to leave by itself when a peer has died, before it is ended.
_SECONDS_TO_LEAVE = 4.0


class PeerLostError(RuntimeError):
    """Another process of the job has died, or cannot be reached any more."""


class Server:
    """The server of this process; there is one, and it stays until the process ends.

    Args:
      role: who this process is.
      config: settings of the server, such as its number of devices.
    """

    def __init__(self, role: Role, config: tf.ConfigProto) -> None:
        self.role = role
        addresses = list(role.peers.values())
        reach.without_proxies([str(role.address), *addresses])
        reach.check_port_free(str(role.address), role.name)
        _tell_about_open_port(role)
        protocol = FLAGS.get("server_protocol")
        try:
            self._server = tf.train.Server(
                tf.train.ClusterSpec(role.spec), role.job, role.index, protocol=protocol, config=config
            )
        except tf.errors.OpError as error:
            if isinstance(error, tf.errors.NotFoundError | tf.errors.UnimplementedError):
                raise ValueError(
                    f"--server_protocol={protocol}: this TensorFlow has no such protocol; use grpc, or leave it out."
                ) from None
            raise ValueError(f"The server of {role.name} cannot listen on {role.address}: {error.message}") from None
        self.target = self._server.target
        self._watch = PeerWatch(role.peers, self._lost, self._said_goodbye)
        self._met = False
        #: A run has begun and not come to its end: who leaves now, leaves the others alone with it.
        self.in_run = False
        self._lock = threading.Lock()
        self._goodbyes: set[str] = set()
        self.loss: str | None = None
        self._interrupt: Callable[[], None] | None = None
        self._board = _Board(self.target, role.job, role.index)

    # --- the others -------------------------------------------------------------------------------------------------

    def wait_for_peers(self) -> None:
        """Returns when every process of the job can be reached; says after a while which ones cannot, and why."""
        self.check()
        if self._met:
            return  # in an earlier run; the watch has had an eye on them since
        patience = _Patience(self.role)
        while missing := reach.unreachable(self.role.peers) or reach.not_servers(self.role.peers):
            patience.wait(missing)
        self._watch.start(self.role.peers)
        self._met = True

    def tell(self, peer: str, key: str, value: Any) -> None:
        """Writes on the board of a process, `worker 0` or `ps 1`; one that has left is told nothing any more."""
        if self._said_goodbye(peer):
            return
        job, _, index = peer.partition(" ")
        board = _Board(self.target, job, int(index or 0))
        try:
            board.write(key, json.dumps(value))
        finally:
            board.close()

    def told(self, key: str) -> Any:
        """What stands on this process's own board under `key`, or None."""
        text = self._board.read(key)
        return None if text is None else json.loads(text)

    def wait_until_told(self, key: str) -> Any:
        """What another process writes on this one's board."""
        patience = _Patience(self.role)
        while (value := self.told(key)) is None:
            self.check()
            patience.wait({})
        return value

    def tell_all_workers(self, key: str, value: Any) -> None:
        """Writes on the boards of all other workers."""
        for peer in self.role.peers:
            if peer.startswith("worker "):
                self.tell(peer, key, value)

    def meet_at_chief(self, key: str) -> None:
        """The chief waits here for all workers that are still there; the others tell it and go on."""
        if not self.role.is_chief:
            self.tell(_CHIEF, f"{key}/{self.role.name}", True)
            return
        for peer in self.role.peers:
            while peer.startswith("worker ") and not self.told(f"{key}/{peer}") and not self._said_goodbye(peer):
                self.check()
                time.sleep(_POLL_SECONDS)

    def any_worker(self, key: str, own: bool) -> bool:
        """Whether one of the workers says true; all of them ask, and are told the same."""
        if not self.role.is_chief:
            self.tell(_CHIEF, f"{key}/{self.role.name}", own)
            return bool(self.wait_until_told(key))
        answers = [self.wait_until_told(f"{key}/{peer}") for peer in self.role.peers if peer.startswith("worker ")]
        agreed = own or any(answers)
        self.tell_all_workers(key, agreed)
        return agreed

    # --- death and goodbye --------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises an error when a peer was lost."""
        if self.loss is not None:
            raise PeerLostError(self.loss)

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Inside, `interrupt` is called from another thread when a peer is lost: the main one may wait for ever."""
        self._interrupt = interrupt
        try:
            yield
        finally:
            self._interrupt = None

    def serve(self) -> None:
        """What a ps or a controller does: it waits until all workers have said goodbye."""
        workers = {peer for peer in self.role.peers if peer.startswith("worker ")}
        while not all(self._said_goodbye(worker) for worker in workers):
            self.check()
            time.sleep(_POLL_SECONDS)

    def goodbye(self) -> None:
        """Tells the others that this process ends well."""
        self._watch.stop()
        if self.loss is not None or self.in_run or _failed():
            return
        for peer in self.role.peers:
            # One that ended in the meantime, for whatever reason, needs no goodbye.
            with contextlib.suppress(tf.errors.OpError):
                self.tell(peer, f"goodbye/{self.role.name}", True)

    def _said_goodbye(self, peer: str) -> bool:
        with self._lock:
            if peer not in self._goodbyes and self.told(f"goodbye/{peer}"):
                self._goodbyes.add(peer)
            return peer in self._goodbyes

    def _lost(self, peer: str, why: str) -> None:
        self.loss = (
            f"{peer} was lost: {why}. {self.role.name} ends as well. Start the job again: it goes on from its last "
            "checkpoint."
        )
        tf.logging.error("%s", self.loss)
        interrupt = self._interrupt
        threading.Thread(target=_leave_at_last, daemon=True).start()
        if interrupt is not None:
            interrupt()


def _leave_at_last() -> None:
    """Ends the process if it does not leave by itself: it may hang in a call that nothing interrupts."""
    time.sleep(_SECONDS_TO_LEAVE)
    os._exit(1)


class _Patience:
    """Waiting for others: says after a while who is missing and why that may be, and gives up when the user wants that.

    Args:
      role: who waits.
    """

    def __init__(self, role: Role) -> None:
        self._role, self._started, self._told = role, time.monotonic(), False
        self._limit = FLAGS.get("session_timeout")

    def wait(self, missing: Mapping[str, str]) -> None:
        """Waits a moment.

        Args:
          missing: the peers that cannot be reached, each with the reason.
        """
        waited = time.monotonic() - self._started
        if self._limit and waited > self._limit:
            raise PeerLostError(
                f"--session_timeout={self._limit}: after {self._limit} s\n{reach.explain(self._role, missing)}"
            )
        if not self._told and waited > reach.WAIT_MESSAGE_AFTER:
            self._told = True
            tf.logging.warning("%s is waiting.\n%s", self._role.name, reach.explain(self._role, missing))
        time.sleep(_POLL_SECONDS)


class _Board:
    """Named texts on the server of one process.

    Args:
      target: this process's server.
      job: the job of the process that has the board.
      index: its index there.
    """

    def __init__(self, target: str, job: str, index: int) -> None:
        self._graph = tf.Graph()
        device = f"/job:{job}/task:{index}"
        with self._graph.as_default(), tf.device(f"{device}/cpu:0"):
            self._key, self._text = tf.placeholder(tf.int64, []), tf.placeholder(tf.string, [])
            table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name="moxing/board")
            self._write = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=self._key, values=self._text)
            self._read = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=self._key, default_value="")
        config = tf.ConfigProto(device_filters=[device])
        self._session = tf.Session(target, self._graph, config)

    def write(self, key: str, text: str) -> None:
        self._session.run(self._write, {self._key: _number(key), self._text: text})

    def close(self) -> None:
        self._session.close()

    def read(self, key: str) -> str | None:
        text = self._session.run(self._read, {self._key: _number(key)})
        return text.decode() or None


def _number(key: str) -> int:
    # TensorFlow has no table from texts to texts.
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], signed=True)


def _tell_about_open_port(role: Role) -> None:
    addresses = reach.open_interfaces()
    if addresses:
        tf.logging.warning(
            "The TensorFlow server of %s listens on every interface of this machine (%s) and executes whatever reaches "
            "its port. Keep strangers out with a firewall, or run a local cluster with `moxing run --isolate`.",
            role.name,
            ", ".join(addresses),
        )


# --- the server of the process ----------------------------------------------------------------------------------------

_servers: list[Server] = []
_failures: list[BaseException] = []


def server_of(role: Role, config: tf.ConfigProto) -> Server:
    """The server of this process, started at the first call."""
    if _servers:
        if _servers[0].role != role:
            raise ValueError(
                f"This process is {_servers[0].role.name} of a job already, and cannot become {role.name} of another: "
                "the cluster's flags must stay the same."
            )
        return _servers[0]
    server = Server(role, config)
    _servers.append(server)
    before = sys.excepthook

    def note(kind: Any, error: BaseException, trace: Any) -> None:
        _failures.append(error)
        before(kind, error, trace)

    sys.excepthook = note
    atexit.register(server.goodbye)
    return server


def _failed() -> bool:
    return bool(_failures)
