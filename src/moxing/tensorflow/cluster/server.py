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
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.framework.util.interfaces import open_interfaces
from moxing.tensorflow.cluster import reach
from moxing.tensorflow.cluster.board import Board
from moxing.tensorflow.cluster.peers import PeerWatch
from moxing.tensorflow.cluster.roles import Role
from moxing.tensorflow.cluster.roll_call import CHIEF, RollCall

_POLL_SECONDS = 0.2
#: How long a process may take to leave by itself when a peer has died, before it is ended.
_SECONDS_TO_LEAVE = 4.0
#: How long the end of the process waits for the watch, which may be closing the session or asking a peer.
_SECONDS_TO_JOIN = 3.0


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
                raise FlagError(
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
        self._board = Board(self.target, role.name)
        self._roll_call = RollCall(role, self.target, self._board)

    # --- the others -------------------------------------------------------------------------------------------------

    def wait_for_peers(self) -> None:
        """Returns when this process has reached all others; the chief's returns when all others have said so too.

        Says after a while who is missing, and why that may be.

        Raises:
          RoleError: this process and the chief, or the chief and another one, have different host lists.
        """
        self.check()
        if self._met:
            return  # in an earlier run; the watch has had an eye on them since
        patience = _Patience(self.role)
        while missing := reach.unreachable(self.role.peers) or reach.not_servers(self.role.peers):
            # Already here: one with longer lists waits for somebody who never comes.
            self._roll_call.call(missing)
            patience.wait(missing)
        self._watch.start(self.role.peers)
        self._roll_call.join()
        while absent := self._roll_call.call():
            self.check()
            patience.wait(absent)
        self._met = True

    def tell(self, peer: str, key: str, value: Any) -> None:
        """Writes on the board of a process, `worker 0` or `ps 1`; one that has left is told nothing any more."""
        if self._said_goodbye(peer):
            return
        board = Board(self.target, peer)
        try:
            board.write(key, json.dumps(value))
        finally:
            board.close()

    def told(self, key: str) -> Any:
        """What stands on this process's own board under `key`, or None."""
        text = self._board.read(key)
        return None if text is None else json.loads(text)

    def wait_until_told(self, key: str, by: str = CHIEF, with_limit: bool = True) -> Any:
        """What another process writes on this one's board.

        Args:
          key: its name.
          by: who writes it; who has said goodbye writes nothing any more.
          with_limit: see `_wait`.
        """

        def is_over() -> bool:
            if self.told(key) is not None:
                return True
            # Asked again: it may have come just before the goodbye.
            if self._said_goodbye(by) and self.told(key) is None:
                raise PeerLostError(
                    f"{by} has ended its run and left, while {self.role.name} still needs it. All workers must run the "
                    "same script with the same flags."
                )
            return False

        self._wait(is_over, with_limit)
        return self.told(key)

    def tell_all_workers(self, key: str, value: Any) -> None:
        """Writes on the boards of all other workers."""
        for worker in self._other_workers:
            self.tell(worker, key, value)

    def meet_at_chief(self, key: str) -> None:
        """The chief waits here for all workers that are still there; the others tell it and go on."""
        if not self.role.is_chief:
            self.tell(CHIEF, f"{key}/{self.role.name}", True)
            return
        self._answers(key)

    def any_worker(self, key: str, own: bool) -> bool:
        """Whether one of the workers says true; all of them ask, and are told the same. One that left has no say."""
        return any(self.everyones(key, own, with_limit=True))

    def everyones(self, key: str, own: Any, with_limit: bool = False) -> list[Any]:
        """What every worker says, the chief's first; all of them ask, and are told the same.

        Args:
          key: its name.
          own: what this one says, not None.
          with_limit: true where all say it at about the same time, see `_wait`.
        """
        if not self.role.is_chief:
            self.tell(CHIEF, f"{key}/{self.role.name}", own)
            return list(self.wait_until_told(key, with_limit=with_limit))
        said = [own, *(answer for answer in self._answers(key, with_limit) if answer is not None)]
        self.tell_all_workers(key, said)
        return said

    @property
    def _other_workers(self) -> list[str]:
        return [peer for peer in self.role.peers if peer.startswith("worker ")]

    def _answers(self, key: str, with_limit: bool = False) -> list[Any]:
        """What the other workers tell the chief, None for one that said goodbye instead."""
        for worker in self._other_workers:
            self._wait(partial(self._has_answered, key, worker), with_limit)
        return [self.told(f"{key}/{worker}") for worker in self._other_workers]

    def _has_answered(self, key: str, worker: str) -> bool:
        return self.told(f"{key}/{worker}") is not None or self._said_goodbye(worker)

    def _wait(self, is_over: Callable[[], bool], with_limit: bool = False) -> None:
        """Waits, but not for a job that has lost a peer.

        Args:
          is_over: says when to go on.
          with_limit: true for what comes soon where all is well: it is told when it does not, and --session_timeout
            makes an end of it.
        """
        patience = _Patience(self.role)
        while not is_over():
            self.check()
            self._roll_call.check()
            if with_limit:
                patience.wait({})
            else:
                time.sleep(_POLL_SECONDS)

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
        self._wait(lambda: all(self._said_goodbye(worker) for worker in self._other_workers))

    def goodbye(self) -> None:
        """Tells the others that this process ends well."""
        self._watch.stop()
        # A thread that comes back from TensorFlow while Python is ending takes the process down with SIGABRT.
        self._watch.join(_SECONDS_TO_JOIN)
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
        self.loss = f"{peer} was lost: {why}. {self.role.name} ends as well.{restart_advice()}"
        tf.logging.error("%s", self.loss)
        interrupt = self._interrupt
        threading.Thread(target=_leave_at_last, daemon=True).start()
        if interrupt is not None:
            interrupt()


def restart_advice() -> str:
    """What a user has to do after a death, for the end of a message; nothing where a supervisor does it.

    Example:
      >>> restart_advice()
      ' Start the job again: it goes on from its last checkpoint.'
    """
    return "" if _is_supervised() else " Start the job again: it goes on from its last checkpoint."


def _is_supervised() -> bool:
    """Whether `moxing run --workers` has started this process: it restarts the job and has warned of open ports."""
    return bool(os.environ.get("MOXING_SUPERVISED"))


_may_leave = threading.Lock()


@contextmanager
def staying() -> Iterator[None]:
    """Inside, the loss of a peer does not end the process: it is bringing something to its end that takes a while.

    Example:
      >>> with staying():
      ...     pass
    """
    with _may_leave:
        yield


def _leave_at_last() -> None:
    """Ends the process if it does not leave by itself: it may hang in a call that nothing interrupts."""
    time.sleep(_SECONDS_TO_LEAVE)
    with _may_leave:
        os._exit(1)


class _Patience:
    """Waiting for others: says now and then who is missing and why that may be, and gives up when the user wants that.

    Args:
      role: who waits.
    """

    def __init__(self, role: Role) -> None:
        self._role, self._started = role, time.monotonic()
        self._next_message = self._started + reach.WAIT_MESSAGE_AFTER
        self._limit = FLAGS.get("session_timeout")

    def wait(self, missing: Mapping[str, str]) -> None:
        """Waits a moment.

        Args:
          missing: the peers that cannot be reached or have not joined, each with the reason.
        """
        now = time.monotonic()
        if self._limit and now - self._started > self._limit:
            raise PeerLostError(
                f"--session_timeout={self._limit}: after {self._limit} s\n{reach.explain(self._role, missing)}"
            )
        if now > self._next_message:
            self._next_message = now + reach.WAIT_MESSAGE_EVERY
            outlook = "waits on; --session_timeout=SECONDS makes it give up"
            if self._limit:
                outlook = f"gives up after --session_timeout={self._limit}"
            tf.logging.warning(
                "%s is waiting.\n%s\nIt has waited for %.0f s and %s.",
                self._role.name,
                reach.explain(self._role, missing),
                now - self._started,
                outlook,
            )
        time.sleep(_POLL_SECONDS)


def _tell_about_open_port(role: Role) -> None:
    addresses = open_interfaces()
    if addresses and not _is_supervised():
        tf.logging.warning(
            "The TensorFlow server of %s listens on every interface of this machine (%s) and executes whatever reaches "
            "its port. Keep strangers out with a firewall, or run a local cluster with `moxing run --workers N "
            "--isolate`.",
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
