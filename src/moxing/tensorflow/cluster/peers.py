"""Watching the other processes of a job from outside of TensorFlow, which would wait for a dead one for ever."""

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

#: A place that a socket connects to: address family and address.
Endpoint = tuple[int, Any]

#: Troubles of this process, which say nothing about the peer.
_OWN_TROUBLES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
#: This machine has no such network at all; another address of the peer may tell more.
_NO_NETWORK = frozenset({errno.ENETUNREACH, errno.EAFNOSUPPORT})

#: With many peers they are asked less often: so many probes a second, but each peer at least every 5 s.
_PROBES_A_SECOND = 100
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True)
class Answer:
    """What came of one connection: `state` is the verdict, `detail` says why for messages."""

    state: Literal["open", "refused", "silent", "unresolved", "unknown"]
    detail: str = ""


class Target:
    """One host:port to connect to. It remembers where the name led the last time, for when the name server is away.

    Example:
      >>> with socket.create_server(("127.0.0.1", 0)) as server:
      ...     Target(f"127.0.0.1:{server.getsockname()[1]}").probe().state
      'open'
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._host, self._port = split_address(address)
        self._known: list[Endpoint] = []
        self._trouble = ""
        self._lookup: threading.Thread | None = None
        with contextlib.suppress(OSError, UnicodeError):  # an address needs no name server
            self._known = _endpoints(self._host, self._port, socket.AI_NUMERICHOST)
        self._is_name = not self._known

    def probe(self, timeout: float = 2.0) -> Answer:
        """Connects once and hangs up; takes at most `timeout` for the name and as much for the connection."""
        self._resolve(timeout)
        if not self._known:
            return Answer("unresolved", self._trouble or f"the name {self._host} was not resolved in {timeout:g} s")
        return _connect(list(self._known), timeout)

    def endpoints(self, timeout: float = 2.0) -> list[Endpoint]:
        """Where the name leads, empty where it does not resolve."""
        self._resolve(timeout)
        return list(self._known)

    def _resolve(self, timeout: float) -> None:
        if not self._is_name:
            return
        # Every time anew, since a scheduler may move a name; in a thread, since a name server can keep us for a minute.
        if self._lookup is None or not self._lookup.is_alive():
            self._lookup = threading.Thread(target=self._look_up, name=f"resolve {self._host}", daemon=True)
            self._lookup.start()
        self._lookup.join(timeout)

    def _look_up(self) -> None:
        try:
            self._known = _endpoints(self._host, self._port)
        except (OSError, UnicodeError) as error:
            self._trouble = f"the name {self._host} does not resolve ({getattr(error, 'strerror', None) or error})"


def _endpoints(host: str, port: int, flags: int = 0) -> list[Endpoint]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys((int(family), place) for family, _, _, _, place in found))


def _connect(endpoints: list[Endpoint], timeout: float) -> Answer:
    """Connects to all endpoints at once, so that one that is silent does not keep us from the next."""
    codes: list[int] = []
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as open_sockets:
        for family, place in endpoints:
            try:
                connection = open_sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
            except OSError as error:
                codes.append(error.errno or errno.EIO)
                continue
            connection.setblocking(False)
            code = connection.connect_ex(place)
            if code == errno.EINPROGRESS:
                selector.register(connection, selectors.EVENT_WRITE)
            elif code or _is_own_echo(connection):
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
                if not code and not _is_own_echo(connection):
                    return Answer("open")
                codes.append(code or errno.ECONNREFUSED)
                selector.unregister(connection)
    return _verdict(codes)


def _is_own_echo(connection: socket.socket) -> bool:
    """On one machine the kernel may take the very port we want to reach for our end, and connect us to ourselves."""
    try:
        return bool(connection.getsockname() == connection.getpeername())
    except OSError:
        return True


def _verdict(codes: list[int]) -> Answer:
    telling = [code for code in codes if code not in _NO_NETWORK] or codes
    if any(code in _OWN_TROUBLES for code in telling):
        return Answer("unknown", os.strerror(next(code for code in telling if code in _OWN_TROUBLES)))
    if all(code == errno.ECONNREFUSED for code in telling):
        return Answer("refused", "connection refused")
    silent = next(code for code in telling if code != errno.ECONNREFUSED)
    return Answer("silent", "no answer" if silent == errno.ETIMEDOUT else os.strerror(silent).lower())


def _never(name: str) -> bool:
    return False


class PeerWatch:
    """Watches the ports of the peers and tells once when one of them is lost.

    A peer that refuses `refusals` connections in a row has died, and one that is silent for `silence` seconds is out of
    reach; unless `is_gone` says that it ended well, then it is watched no longer. A peer that has never been there is
    not lost: waiting for it is the start's business.

    Args:
      peers: The addresses of the peers, by name.
      on_lost: Called with the name and the reason, once, in a thread of the watch.
      is_gone: Whether a peer has said goodbye.
      every: Seconds between two probes of a peer; with hundreds of peers it grows to at most 5.
      refusals: So many refused connections in a row are a death.
      silence: So many seconds without an answer are a loss.
      timeout: Seconds that one probe waits.

    Example:
      >>> watch = PeerWatch({"ps 0": "127.0.0.1:2222"}, on_lost=lambda name, why: print(name, why))
      >>> watch.start()
      >>> watch.stop()
    """

    def __init__(
        self,
        peers: Mapping[str, str],
        on_lost: Callable[[str, str], None],
        is_gone: Callable[[str], bool] = _never,
        *,
        every: float = 0.5,
        refusals: int = 4,
        silence: float = 25.0,
        timeout: float = 2.0,
    ) -> None:
        self._targets = {name: Target(address) for name, address in peers.items()}
        self._on_lost, self._is_gone = on_lost, is_gone
        self._refusals, self._silence, self._timeout = refusals, silence, timeout
        self._pause = max(every, min(len(peers) / _PROBES_A_SECOND, _LONGEST_PAUSE))
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, reached: Collection[str] = ()) -> None:
        """Begins to watch. A watch starts once.

        Args:
          reached: Names of the peers that have been reached before: these are lost even if the watch never sees them.
        """
        if self._threads or self._over.is_set():
            raise RuntimeError("PeerWatch.start() was called before; make a new PeerWatch.")
        for place, name in enumerate(self._targets):
            delay = self._pause * place / len(self._targets)
            arguments = (name, delay, name in reached)
            thread = threading.Thread(target=self._watch, args=arguments, name=f"watch {name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Ends the watch: `on_lost` is not called any more, unless a call has already begun."""
        with self._lock:
            self._over.set()

    def join(self, timeout: float) -> None:
        """Waits until the watch's threads have ended, after `stop` or a loss, but no longer than `timeout` seconds."""
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _watch(self, name: str, delay: float, seen: bool) -> None:
        try:
            self._over.wait(delay)
            lost = self._wait_for_loss(name, seen)
        except Exception:  # a watch that fails must not take the training with it
            _logger.exception("%s is watched no longer.", name)
            return
        with self._lock:
            if lost is None or self._over.is_set():
                return
            self._over.set()
        try:
            self._on_lost(name, lost)
        except Exception:
            _logger.exception("%s is lost (%s), and telling so failed.", name, lost)

    def _wait_for_loss(self, name: str, seen: bool) -> str | None:
        """The reason once `name` is lost, None when it has gone or the watch is over."""
        target, refused, silent = self._targets[name], 0, 0.0
        asked_until = time.monotonic()
        while not self._over.is_set():
            # The last probe of a silence ends with it, and is no shorter than an answer may take.
            answer = target.probe(min(self._timeout, max(self._silence - silent, 0.2)))
            # A pause of this process, by a debugger or its virtual machine, is no silence of the peer's.
            asked_for = min(time.monotonic() - asked_until, self._pause + 2 * self._timeout)
            asked_until = time.monotonic()
            if answer.state == "open":
                seen, refused, silent = True, 0, 0.0
            elif seen and answer.state != "unknown":
                if self._has_gone(name):
                    return None
                refused = refused + 1 if answer.state == "refused" else 0
                silent += asked_for
                if refused >= self._refusals:
                    return f"its port {target.address} refuses connections: the process has died"
                if silent >= self._silence:
                    return (
                        f"{target.address} has not answered for {silent:.0f} s ({answer.detail}): "
                        "the machine is down or the network is cut"
                    )
            self._over.wait(self._pause)
        return None

    def _has_gone(self, name: str) -> bool:
        try:
            return self._is_gone(name)
        except Exception:
            _logger.exception("Whether %s said goodbye could not be asked.", name)
            return False
