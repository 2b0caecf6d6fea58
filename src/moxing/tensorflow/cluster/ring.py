"""Ring all-reduce and all-gather over sockets from every worker to the next one.

TensorFlow's collectives use gRPC, which copies the data about six times; here it goes from the array to the socket and
from the socket into the array. All workers must make the same calls in the same order.

An all-reduce divides the array into one part for every worker. In the first round (reduce-scatter) every part goes
around once and is summed on its way; in the second (all-gather) the sums go around. So each worker sends 2 (n - 1) / n
of the array, for any number n of workers.
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

#: Bytes that are added at a time: they fit into the cache of the processor.
_PIECE_BYTES = 512 << 10
#: Alignment of TensorFlow's arrays in bytes.
_ALIGNMENT = 64
_TOKEN_BYTES = 32
_SECONDS_TO_CONNECT = 15.0


class RingBrokenError(ConnectionError):
    """A neighbour in the ring has closed its connection."""


class Ring:
    """The connections of one worker.

    Args:
      index: index of this worker.
      size: number of workers.
      previous: the connection from the previous worker.
      following: the connection to the next worker.

    Example:
      >>> import concurrent.futures
      >>> pairs = [socket.socketpair() for _ in range(2)]
      >>> rings = [Ring(index, 2, pairs[index - 1][1], pairs[index][0]) for index in range(2)]
      >>> with concurrent.futures.ThreadPoolExecutor() as threads:
      ...     sums = threads.map(Ring.all_reduce, rings, [np.array([1.0, 2.0]), np.array([10.0, 20.0])])
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
        self._buffers = BufferPool()
        #: The worker that an error names: the previous one, unless sending to the next one has failed.
        self._broken_at = (index - 1) % size
        # In a thread: if all workers blocked in sending, none would receive.
        self._sender = ThreadPoolExecutor(1, "ring")

    def all_reduce(self, values: np.ndarray) -> np.ndarray:
        """Returns the sum of the arrays of all workers, bit for bit the same on all.

        The memory of the result belongs to the ring and is reused once nothing else refers to it.
        """
        own = np.ascontiguousarray(values).reshape(-1)
        total = self._buffers.array(own.size, own.dtype)
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
                # Send on at once. After the last addition this is the first message of the second round.
                sending = self._send(total[start:stop])
        for turn in range(self._size - 1):
            part = parts[(self._index - turn) % self._size]
            self._receive(total[part])
            if turn < self._size - 2:
                sending = self._send(total[part])
        try:
            sending.result()  # the caller may write into the sum
        except OSError as error:
            raise self._broken() from error
        return total.reshape(values.shape)

    def all_gather(self, values: np.ndarray) -> list[np.ndarray]:
        """Returns the arrays of all workers, by worker: flat arrays of one type, which may differ in length.

        Every array goes around once and is sent n - 1 times.

        Example:
          >>> import concurrent.futures
          >>> pairs = [socket.socketpair() for _ in range(2)]
          >>> rings = [Ring(index, 2, pairs[index - 1][1], pairs[index][0]) for index in range(2)]
          >>> with concurrent.futures.ThreadPoolExecutor() as threads:
          ...     found = threads.map(Ring.all_gather, rings, [np.array([1, 2]), np.array([3])])
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
                sending.result()  # the caller may write into its array
        except OSError as error:
            raise self._broken() from error
        return parts

    def close(self) -> None:
        """Closes the connections. A call of `all_reduce` or `all_gather` in another thread raises an error."""
        for connection in (self._previous, self._following):
            with contextlib.suppress(OSError):  # already closed by the other side
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
            # Wakes up `all_reduce`, which waits for the previous worker.
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


class BufferPool:
    """Memory that is reused once nothing refers to it: new memory costs a page fault every 4 kB."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[np.ndarray]] = {}

    def array(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Returns a flat array, aligned so that TensorFlow uses it without a copy."""
        count = size * dtype.itemsize
        block = self._free(count + _ALIGNMENT)
        start = -block.ctypes.data % _ALIGNMENT
        return block[start : start + count].view(dtype)

    def _free(self, count: int) -> np.ndarray:
        blocks = self._blocks.setdefault(count, [])
        for block in blocks:
            # Three references are the list, the loop variable and the argument; any other is an array in use.
            if sys.getrefcount(block) <= 3:
                return block
        blocks.append(np.empty(count, np.uint8))
        return blocks[-1]


def _bytes_of(values: np.ndarray) -> memoryview:
    return values.view(np.uint8).data


class Listener:
    """Accepts the connection of the previous worker.

    Attributes:
      port: the port to connect to.
      token: the secret that the previous worker must send.
    """

    def __init__(self) -> None:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._socket = socket.create_server(("", 0), family=family, dualstack_ipv6=both)
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_hex(_TOKEN_BYTES // 2)

    def accept(self) -> socket.socket:
        """Returns the connection that sends the token; closes all others."""
        self._socket.settimeout(_SECONDS_TO_CONNECT)
        while True:
            connection, _ = self._socket.accept()
            connection.settimeout(_SECONDS_TO_CONNECT)
            try:
                received = connection.recv(_TOKEN_BYTES, socket.MSG_WAITALL)
            except OSError:
                received = b""
            if hmac.compare_digest(received, self.token.encode()):
                return connection
            connection.close()

    def close(self) -> None:
        """Stops listening."""
        self._socket.close()


def connect_ring(
    index: int, addresses: Sequence[str], send: Callable[[list[Any]], None], receive: Callable[[], list[Any]]
) -> Ring | None:
    """Connects this worker to the ring of all workers; returns None if a neighbor cannot be reached.

    Args:
      index: index of this worker.
      addresses: host:port of all workers.
      send: sends port and token of this worker's listener to the previous worker.
      receive: receives port and token from the next worker.
    """
    following = (index + 1) % len(addresses)
    host = addresses[following].rpartition(":")[0].strip("[]")
    with contextlib.closing(Listener()) as listener, contextlib.ExitStack() as opened:
        send([listener.port, listener.token])
        try:
            out = opened.enter_context(connect(host, *receive()))
            back = opened.enter_context(listener.accept())
        except OSError:
            return None
        opened.pop_all()
    return Ring(index, len(addresses), back, out)


def connect(host: str, port: int, token: str) -> socket.socket:
    """Connects to the listener of the next worker."""
    connection = socket.create_connection((host, port), timeout=_SECONDS_TO_CONNECT)
    connection.sendall(token.encode())
    return connection
