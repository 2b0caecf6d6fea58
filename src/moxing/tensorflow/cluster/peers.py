"""Watches the other processes of a job. TensorFlow itself would wait forever for a dead one."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from moxing.tensorflow.cluster.roles import split_address

_logger = logging.getLogger(__name__)

#: What a socket connects to: address family and address.
Endpoint = tuple[int, Any]

#: Errors of this process, which say nothing about the peer.
_OWN_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
#: This machine has no such network; another address of the peer may be reachable.
_NO_NETWORK = frozenset({errno.ENETUNREACH, errno.EAFNOSUPPORT})

#: With many peers each is probed less often: at most this many probes a second, but each peer at least every 5 s.
_PROBES_A_SECOND = 100
_MAX_INTERVAL = 5.0


@dataclass(frozen=True)
class Answer:
    """The result of one connection attempt: `state`, and a `detail` for messages."""

    state: Literal["open", "refused", "silent", "unresolved", "unknown"]
    detail: str = ""


class Target:
    """One host:port to connect to. It caches the resolved addresses, for times when the name server is down.

    Example:
      >>> with socket.create_server(("127.0.0.1", 0)) as server:
      ...     Target(f"127.0.0.1:{server.getsockname()[1]}").probe().state
      'open'
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._host, self._port = split_address(address)
        self._known: list[Endpoint] = []
        self._error = ""
        self._lookup: threading.Thread | None = None
        with contextlib.suppress(OSError, UnicodeError):  # not a numeric address
            self._known = _endpoints(self._host, self._port, socket.AI_NUMERICHOST)
        self._is_name = not self._known

    def probe(self, timeout: float = 2.0) -> Answer:
        """Connects once and closes; takes at most `timeout` for the name and as much for the connection."""
        self._resolve(timeout)
        if not self._known:
            return Answer("unresolved", self._error or f"the name {self._host} was not resolved in {timeout:g} s")
        return _connect(list(self._known), timeout)

    def endpoints(self, timeout: float = 2.0) -> list[Endpoint]:
        """The addresses of the host; empty if its name does not resolve."""
        self._resolve(timeout)
        return list(self._known)

    def _resolve(self, timeout: float) -> None:
        if not self._is_name:
            return
        # Resolve every time: a scheduler may move a name. In a thread: a name server can take a minute.
        if self._lookup is None or not self._lookup.is_alive():
            self._lookup = threading.Thread(target=self._look_up, name=f"resolve {self._host}", daemon=True)
            self._lookup.start()
        self._lookup.join(timeout)

    def _look_up(self) -> None:
        try:
            self._known = _endpoints(self._host, self._port)
        except (OSError, UnicodeError) as error:
            self._error = f"the name {self._host} does not resolve ({getattr(error, 'strerror', None) or error})"


def _endpoints(host: str, port: int, flags: int = 0) -> list[Endpoint]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))


def _connect(endpoints: list[Endpoint], timeout: float) -> Answer:
    """Connects to all endpoints in parallel, so that a silent one does not delay the others."""
    codes: list[int] = []
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as open_sockets:
        for family, address in endpoints:
            try:
                connection = open_sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
            except OSError as error:
                codes.append(error.errno or errno.EIO)
                continue
            connection.setblocking(False)
            code = connection.connect_ex(address)
            if code == errno.EINPROGRESS:
                selector.register(connection, selectors.EVENT_WRITE)
            elif code or _is_self_connection(connection):
                codes.append(code or errno.ECONNREFUSED)
            else:
                return Answer("open")
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                codes.append(errno.ETIMEDOUT)
                break
            for key, _ in ready:
                connection = key.fileobj  # type: ignore[assignment]
                code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if not code and not _is_self_connection(connection):
                    return Answer("open")
                codes.append(code or errno.ECONNREFUSED)
                selector.unregister(connection)
    return _answer(codes)


def _is_self_connection(connection: socket.socket) -> bool:
    """On one machine the kernel may choose the port that we connect to as our own: TCP simultaneous open."""
    try:
        return bool(connection.getsockname() == connection.getpeername())
    except OSError:
        return True


def _answer(codes: list[int]) -> Answer:
    relevant = [code for code in codes if code not in _NO_NETWORK] or codes
    if any(code in _OWN_ERRORS for code in relevant):
        return Answer("unknown", os.strerror(next(code for code in relevant if code in _OWN_ERRORS)))
    if all(code == errno.ECONNREFUSED for code in relevant):
        return Answer("refused", "connection refused")
    silent = next(code for code in relevant if code != errno.ECONNREFUSED)
    return Answer("silent", "no answer" if silent == errno.ETIMEDOUT else os.strerror(silent).lower())


def _never(name: str) -> bool:
    return False


@dataclass(frozen=True)
class WatchTiming:
    """Intervals and limits of a `PeerWatch`.

    Attributes:
      every: seconds between two probes of a peer; with hundreds of peers it grows to at most 5.
      refusals: refused connections in a row after which a peer is lost.
      silence: seconds without an answer after which a peer is lost.
      timeout: seconds that one probe waits.
    """

    every: float = 0.5
    refusals: int = 4
    silence: float = 25.0
    timeout: float = 2.0


_DEFAULT_TIMING = WatchTiming()


class PeerWatch:
    """Probes the ports of the peers and calls a function once if one of them is lost.

    A peer is lost if its port refuses `refusals` connections in a row or does not answer for `silence` seconds. A peer
    that has left without an error (`has_left`) is not lost, and is not probed any more. Nor is a peer lost that has
    never been reached.

    Args:
      peers: the addresses of the peers, by name.
      on_lost: called with the name and the reason, once, in a thread of the watch.
      has_left: whether a peer has ended without an error.
      timing: intervals and limits.

    Example:
      >>> watch = PeerWatch({"ps 0": "127.0.0.1:2222"}, on_lost=lambda name, why: print(name, why))
      >>> watch.start()
      >>> watch.stop()
    """

    def __init__(
        self,
        peers: Mapping[str, str],
        on_lost: Callable[[str, str], None],
        has_left: Callable[[str], bool] = _never,
        timing: WatchTiming = _DEFAULT_TIMING,
    ) -> None:
        self._targets = {name: Target(address) for name, address in peers.items()}
        self._on_lost, self._has_left = on_lost, has_left
        self._timing = timing
        self._interval = max(timing.every, min(len(peers) / _PROBES_A_SECOND, _MAX_INTERVAL))
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, reached: Collection[str] = ()) -> None:
        """Starts the watch. A watch starts once.

        Args:
          reached: names of peers that have been reached before: these can be lost even if no probe succeeds.
        """
        if self._threads or self._over.is_set():
            raise RuntimeError("PeerWatch.start() was called before; create a new PeerWatch.")
        for position, name in enumerate(self._targets):
            delay = self._interval * position / len(self._targets)
            arguments = (name, delay, name in reached)
            thread = threading.Thread(target=self._watch, args=arguments, name=f"watch {name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stops the watch: `on_lost` is not called any more, unless a call has already begun."""
        with self._lock:
            self._over.set()

    def join(self, timeout: float) -> None:
        """Waits for the threads of the watch to end, after `stop` or a loss, for at most `timeout` seconds."""
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _watch(self, name: str, delay: float, seen: bool) -> None:
        try:
            self._over.wait(delay)
            lost = self._wait_for_loss(name, seen)
        except Exception:  # an error in the watch must not end the training
            _logger.exception("Stopped watching %s after an error.", name)
            return
        with self._lock:
            if lost is None or self._over.is_set():
                return
            self._over.set()
        try:
            self._on_lost(name, lost)
        except Exception:
            _logger.exception("%s is lost (%s), and handling the loss failed.", name, lost)

    def _wait_for_loss(self, name: str, seen: bool) -> str | None:
        """Returns the reason once `name` is lost, or None if it has left or the watch is stopped."""
        target, refused, silent = self._targets[name], 0, 0.0
        asked_until = time.monotonic()
        while not self._over.is_set():
            # The last probe ends with the allowed silence, but gives an answer at least 0.2 s.
            answer = target.probe(min(self._timing.timeout, max(self._timing.silence - silent, 0.2)))
            # If this process itself was paused, by a debugger for example, that time does not count as silence.
            asked_for = min(time.monotonic() - asked_until, self._interval + 2 * self._timing.timeout)
            asked_until = time.monotonic()
            if answer.state == "open":
                seen, refused, silent = True, 0, 0.0
            elif seen and answer.state != "unknown":
                if self._check_left(name):
                    return None
                refused = refused + 1 if answer.state == "refused" else 0
                silent += asked_for
                if refused >= self._timing.refusals:
                    return f"its port {target.address} refuses connections: the process has died"
                if silent >= self._timing.silence:
                    return (
                        f"{target.address} has not answered for {silent:.0f} s ({answer.detail}): "
                        "the machine is down or the network is cut"
                    )
            self._over.wait(self._interval)
        return None

    def _check_left(self, name: str) -> bool:
        try:
            return self._has_left(name)
        except Exception:
            _logger.exception("Cannot find out whether %s has left.", name)
            return False
