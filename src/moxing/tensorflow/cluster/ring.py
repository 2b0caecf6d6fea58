"""Connections from every worker to the next one, around which they add up arrays, and pass them on.

TensorFlow's own collectives go through gRPC, which copies what it sends about six times; here the numbers go from the
array to the socket and from the socket into the array. All workers must do the same in the same order.

The numbers are cut into as many parts as there are workers. In the first round every part goes around once and is added
to on its way; in the second the sums go around, and every worker keeps them. So each worker sends 2 (n - 1) / n of the
array, however many there are.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

#: Bytes that are added up at a time: they stay in the processor's cache.
_PIECE_BYTES = 512 << 10
#: Where TensorFlow's arrays begin: at multiples of this.
_ALIGNED = 64
_TOKEN_BYTES = 32
_SECONDS_TO_CONNECT = 15.0


class RingBrokenError(ConnectionError):
    """A neighbour in the ring has closed its connection."""


class Ring:
    """The connections of one worker.

    Args:
      index: which worker this is.
      size: how many there are.
      previous: a connection from the worker before.
      following: a connection to the next worker.

    Example:
      >>> import concurrent.futures
      >>> pairs = [socket.socketpair() for _ in range(2)]
      >>> rings = [Ring(index, 2, pairs[index - 1][1], pairs[index][0]) for index in range(2)]
      >>> with concurrent.futures.ThreadPoolExecutor() as threads:
      ...     sums = threads.map(Ring.add, rings, [np.array([1.0, 2.0]), np.array([10.0, 20.0])])
      ...     print([values.tolist() for values in sums])
      [[11.0, 22.0], [11.0, 22.0]]
      >>> for ring in rings:
      ...     ring.close()
    """

    def __init__(self, index: int, size: int, previous: socket.socket, following: socket.socket) -> None:
        self._index, self._size = index, size
        self._previous, self._following = previous, following
        for connection in (previous, following):
            connection.settimeout(None)
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._results = Results()
        #: The worker to blame when it breaks: the one that numbers are waited for, unless sending failed before.
        self._broken_at = (index - 1) % size
        # Both neighbours send at the same time: who only sent, until all was taken, would wait for ever.
        self._sender = ThreadPoolExecutor(1, "ring")

    def add(self, values: np.ndarray) -> np.ndarray:
        """The sum of what all workers pass; each of them gets the same bits.

        The array belongs to the ring, and is used again when nobody else holds it any more.
        """
        own = np.ascontiguousarray(values).reshape(-1)
        total = self._results.array(own.size, own.dtype)
        ends = [own.size * part // self._size for part in range(self._size + 1)]
        parts = [slice(*pair) for pair in itertools.pairwise(ends)]
        piece = max(1, _PIECE_BYTES // own.dtype.itemsize)
        arrived = np.empty(piece, own.dtype)
        sending = self._send(own[parts[self._index]])
        for turn in range(self._size - 1):
            part = parts[(self._index - turn - 1) % self._size]
            for start in range(part.start, part.stop, piece):
                stop = min(start + piece, part.stop)
                self._receive(arrived[: stop - start])
                np.add(own[start:stop], arrived[: stop - start], out=total[start:stop])
                # On to the next worker at once; when all have added to it, this is where the second round begins.
                sending = self._send(total[start:stop])
        for turn in range(self._size - 1):
            part = parts[(self._index - turn) % self._size]
            self._receive(total[part])
            if turn < self._size - 2:
                sending = self._send(total[part])
        try:
            sending.result()  # who gets the sum may write into it
        except OSError as error:
            raise self._broken() from error
        return total.reshape(values.shape)

    def gather(self, values: np.ndarray) -> list[np.ndarray]:
        """What all workers pass, by worker: flat arrays of one type, each as long as it is.

        An array goes around once, and is sent n - 1 times.

        Example:
          >>> import concurrent.futures
          >>> pairs = [socket.socketpair() for _ in range(2)]
          >>> rings = [Ring(index, 2, pairs[index - 1][1], pairs[index][0]) for index in range(2)]
          >>> with concurrent.futures.ThreadPoolExecutor() as threads:
          ...     found = threads.map(Ring.gather, rings, [np.array([1, 2]), np.array([3])])
          ...     print([[part.tolist() for part in parts] for parts in found])
          [[[1, 2], [3]], [[1, 2], [3]]]
          >>> for ring in rings:
          ...     ring.close()
        """
        parts = [np.ascontiguousarray(values).reshape(-1)] * self._size
        sent: list[Future[None]] = []
        for turn in range(self._size - 1):
            going = parts[(self._index - turn) % self._size]
            sent += [self._send(np.array([going.size], np.int64)), self._send(going)]
            count: np.ndarray = np.empty(1, np.int64)
            self._receive(count)
            coming = np.empty(int(count[0]), going.dtype)
            self._receive(coming)
            parts[(self._index - turn - 1) % self._size] = coming
        try:
            for sending in sent:
                sending.result()  # who passes an array may write into it
        except OSError as error:
            raise self._broken() from error
        return parts

    def close(self) -> None:
        """Ends the connections. Who waits in `add` or `gather`, in another thread, gets an error."""
        for connection in (self._previous, self._following):
            with contextlib.suppress(OSError):  # the other side was faster
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._sender.shutdown(wait=False)

    def _send(self, values: np.ndarray) -> Future[None]:
        try:
            return self._sender.submit(self._send_all, _bytes_of(values))
        except RuntimeError as error:  # closed in the meantime
            raise self._broken() from error

    def _send_all(self, view: memoryview) -> None:
        try:
            self._following.sendall(view)
        except OSError:
            # `add` waits for the previous worker, and must not do so for ever.
            self._broken_at = (self._index + 1) % self._size
            self.close()
            raise

    def _receive(self, values: np.ndarray) -> None:
        view = _bytes_of(values)
        while view:
            try:
                count = self._previous.recv_into(view)
            except OSError as error:
                raise self._broken() from error
            if count == 0:
                raise self._broken()
            view = view[count:]

    def _broken(self) -> RingBrokenError:
        return RingBrokenError(f"the connection of worker {self._index} to worker {self._broken_at} has broken.")


class Results:
    """Memory that is used again when nobody holds it any more: new memory costs the system a page at a time."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[np.ndarray]] = {}

    def array(self, size: int, dtype: np.dtype) -> np.ndarray:
        """A flat array, where TensorFlow takes it without a copy."""
        count = size * dtype.itemsize
        block = self._free(count + _ALIGNED)
        start = -block.ctypes.data % _ALIGNED
        return block[start : start + count].view(dtype)

    def _free(self, count: int) -> np.ndarray:
        blocks = self._blocks.setdefault(count, [])
        for block in blocks:
            # Held by the list, the variable of the loop and the call, and by every array in it that somebody has.
            if sys.getrefcount(block) <= 3:
                return block
        blocks.append(np.empty(count, np.uint8))
        return blocks[-1]


def _bytes_of(values: np.ndarray) -> memoryview:
    return values.view(np.uint8).data


class Listener:
    """Where the worker before connects to.

    Attributes:
      port: told to that worker, with `token`.
      token: who connects must know it.
    """

    def __init__(self) -> None:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._socket = socket.create_server(("", 0), family=family, dualstack_ipv6=both)
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_hex(_TOKEN_BYTES // 2)

    def accept(self) -> socket.socket:
        """The connection of the one who knows the token; strangers are sent away."""
        self._socket.settimeout(_SECONDS_TO_CONNECT)
        while True:
            connection, _ = self._socket.accept()
            connection.settimeout(_SECONDS_TO_CONNECT)
            try:
                said = connection.recv(_TOKEN_BYTES, socket.MSG_WAITALL)
            except OSError:
                said = b""
            if hmac.compare_digest(said, self.token.encode()):
                return connection
            connection.close()

    def close(self) -> None:
        """Nobody can connect any more."""
        self._socket.close()


def connected(
    index: int, addresses: Sequence[str], tell: Callable[[list[Any]], None], told: Callable[[], list[Any]]
) -> Ring | None:
    """The ring of all workers, as this one sees it; None where a neighbour cannot be reached.

    Args:
      index: which worker this is.
      addresses: host:port of all of them.
      tell: tells the worker before where to connect to.
      told: what the next worker tells.
    """
    following = (index + 1) % len(addresses)
    host = addresses[following].rpartition(":")[0].strip("[]")
    with contextlib.closing(Listener()) as listener, contextlib.ExitStack() as opened:
        tell([listener.port, listener.token])
        try:
            out = opened.enter_context(connect(host, *told()))
            back = opened.enter_context(listener.accept())
        except OSError:
            return None
        opened.pop_all()
    return Ring(index, len(addresses), back, out)


def connect(host: str, port: int, token: str) -> socket.socket:
    """A connection to the listener of the next worker."""
    connection = socket.create_connection((host, port), timeout=_SECONDS_TO_CONNECT)
    connection.sendall(token.encode())
    return connection
