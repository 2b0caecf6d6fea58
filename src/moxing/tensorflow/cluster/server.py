"""The TensorFlow server of this process, and its part in the job from joining to leaving.

A process that ends without an error says goodbye to the others before its port closes. A port that closes without a
goodbye means that the process has died: `PeerWatch` notices it, and all processes end.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.framework.util.interfaces import open_interfaces
from moxing.tensorflow.cluster import connectivity
from moxing.tensorflow.cluster.membership import Membership
from moxing.tensorflow.cluster.messages import Messages
from moxing.tensorflow.cluster.peers import PeerWatch
from moxing.tensorflow.cluster.ports import check_port_free
from moxing.tensorflow.cluster.proxies import bypass_proxies
from moxing.tensorflow.cluster.roles import Role
from moxing.tensorflow.cluster.waiting import PeerLostError, PeerWait

#: Seconds that a process has to end by itself after the loss of a peer, before it is killed.
_SECONDS_TO_EXIT = 4.0
#: Seconds that the end of the process waits for the peer watch, which may be closing the session.
_SECONDS_TO_JOIN = 3.0


class Server:
    """The server of this process. There is one, and it runs until the process ends.

    Args:
      role: the role of this process.
      config: settings of the TensorFlow server, such as its number of devices.

    Attributes:
      messages: messages to and from the other processes.
      loss: why the job cannot go on, once a peer is lost.
    """

    def __init__(self, role: Role, config: tf.ConfigProto) -> None:
        self.role = role
        bypass_proxies([str(role.address), *role.peers.values()])
        check_port_free(str(role.address), role.name)
        _warn_about_open_port(role)
        self._server = _start(role, config)
        self.target = self._server.target
        self.messages = Messages(role, self.target, self._check_job)
        self.loss: str | None = None
        self._watch = PeerWatch(role.peers, self._on_lost, self.messages.has_left)
        self._membership = Membership(role, self.target, self.messages.store)
        self._joined = False
        self._in_run = False
        self._interrupt: Callable[[], None] | None = None

    def wait_for_peers(self) -> None:
        """Returns when this process has reached all others; on the chief, when all others have reported that too.

        Logs after a while who is missing, and the likely reasons.

        Raises:
          RoleError: the host lists of the chief and of another process differ.
        """
        self.check()
        if self._joined:
            return  # in an earlier run; the watch has been running since
        waiting = PeerWait(self.role)
        while missing := connectivity.unreachable(self.role.peers) or connectivity.not_servers(self.role.peers):
            # Compare the host lists already now: a process with a longer list waits for one that never comes.
            self._membership.update(missing)
            waiting.poll(missing)
        self._watch.start(self.role.peers)
        self._membership.join()
        while absent := self._membership.update():
            self.check()
            waiting.poll(absent)
        self._joined = True

    def serve(self) -> None:
        """What a ps or a controller does: waits until all workers have left."""
        workers = self.messages.other_workers
        self.messages.wait(lambda: all(self.messages.has_left(worker) for worker in workers))

    def begin_run(self) -> None:
        """Marks the begin of a run: until `end_run`, this process does not leave without an error."""
        self._in_run = True

    def end_run(self) -> None:
        """Marks the end of a run."""
        self._in_run = False

    def leave(self) -> None:
        """Tells the others that this process ends without an error, if that is so."""
        self._watch.stop()
        # A thread that returns from TensorFlow while Python shuts down kills the process with SIGABRT.
        self._watch.join(_SECONDS_TO_JOIN)
        if self.loss is not None or self._in_run or _exceptions:
            return
        for peer in self.role.peers:
            # A peer that has ended in the meantime needs no goodbye.
            with contextlib.suppress(tf.errors.OpError):
                self.messages.leave(peer)

    def check(self) -> None:
        """Raises an error if a peer is lost."""
        if self.loss is not None:
            raise PeerLostError(self.loss)

    @contextmanager
    def on_peer_lost(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """In this context, `interrupt` is called from another thread if a peer is lost: the main one may be blocked."""
        self._interrupt = interrupt
        try:
            yield
        finally:
            self._interrupt = None

    def _check_job(self) -> None:
        self.check()
        self._membership.check()

    def _on_lost(self, peer: str, why: str) -> None:
        lost, own = self.role.describe(peer), self.role.describe(self.role.name)
        self.loss = f"{lost} was lost: {why}. {own} ends as well.{restart_advice()}"
        tf.logging.error("%s", self.loss)
        interrupt = self._interrupt
        threading.Thread(target=_exit_later, daemon=True).start()
        if interrupt is not None:
            interrupt()


def _start(role: Role, config: tf.ConfigProto) -> tf.train.Server:
    protocol = FLAGS.get("server_protocol")
    try:
        job, index = role.task(role.name)
        return tf.train.Server(tf.train.ClusterSpec(role.cluster), job, index, protocol=protocol, config=config)
    except (tf.errors.NotFoundError, tf.errors.UnimplementedError):
        raise FlagError(
            f"--server_protocol={protocol}: this TensorFlow has no such protocol; use grpc, or leave it out."
        ) from None
    except tf.errors.OpError as error:
        raise ValueError(f"The server of {role.name} cannot listen on {role.address}: {error.message}") from None


def restart_advice() -> str:
    """The end of an error message after the loss of a process; empty if a supervisor restarts the job.

    Example:
      >>> restart_advice()
      ' Start the job again: it resumes from its last checkpoint.'
    """
    return "" if is_supervised() else " Start the job again: it resumes from its last checkpoint."


def is_supervised() -> bool:
    """Whether `moxing run --workers` has started this process: it restarts the job and has warned of open ports.

    Example:
      >>> is_supervised()
      False
    """
    return bool(os.environ.get("MOXING_SUPERVISED"))


_may_exit = threading.Lock()


@contextmanager
def no_exit_on_peer_loss() -> Iterator[None]:
    """In this context the loss of a peer does not kill the process: for work that must be finished.

    Example:
      >>> with no_exit_on_peer_loss():
      ...     pass
    """
    with _may_exit:
        yield


def _exit_later() -> None:
    """Kills the process if it does not end by itself: it may be blocked in a call that nothing interrupts."""
    time.sleep(_SECONDS_TO_EXIT)
    with _may_exit:
        os._exit(1)


def _warn_about_open_port(role: Role) -> None:
    addresses = open_interfaces()
    if addresses and not is_supervised():
        tf.logging.warning(
            "The TensorFlow server of %s listens on every interface of this machine (%s) and executes whatever reaches "
            "its port. Protect it with a firewall, or run a local cluster with `moxing run --workers N --isolate`.",
            role.name,
            ", ".join(addresses),
        )


# --- the server of the process ----------------------------------------------------------------------------------------

_servers: list[Server] = []
#: Exceptions that ended the script.
_exceptions: list[BaseException] = []


def process_server(role: Role, config: tf.ConfigProto) -> Server:
    """Returns the server of this process; the first call starts it."""
    if _servers:
        if _servers[0].role != role:
            raise ValueError(
                f"This process is already {_servers[0].role.name} of a job and cannot become {role.name} of another: "
                "the cluster flags must not change."
            )
        return _servers[0]
    server = Server(role, config)
    _servers.append(server)
    excepthook = sys.excepthook

    def record(kind: Any, error: BaseException, trace: Any) -> None:
        _exceptions.append(error)
        excepthook(kind, error, trace)

    sys.excepthook = record
    atexit.register(server.leave)
    return server
