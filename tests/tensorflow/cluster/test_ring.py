"""Arrays that go around sockets."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from moxing.tensorflow.cluster.ring import Listener, Ring, RingBrokenError, connect, connect_ring


@contextmanager
def workers(size: int) -> Iterator[list[Ring]]:
    """So many workers, each with its own sockets."""
    listeners = [Listener() for _ in range(size)]
    following = [connect("127.0.0.1", other.port, other.token) for other in [*listeners[1:], listeners[0]]]
    rings = [Ring(index, size, listeners[index].accept(), following[index]) for index in range(size)]
    for listener in listeners:
        listener.close()
    try:
        yield rings
    finally:
        for ring in rings:
            ring.close()


def together(rings: list[Ring], work: Callable[[int, Ring], object]) -> list[object]:
    """Does something on all workers at the same time."""
    with ThreadPoolExecutor(len(rings)) as threads:
        return list(threads.map(work, range(len(rings)), rings))


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (0,), (1000, 1000)])
def test_everyone_has_the_sum(size, shape):
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=shape).astype(np.float32) for _ in range(size)]
    before = [array.copy() for array in arrays]
    with workers(size) as rings:
        sums = together(rings, lambda index, ring: ring.all_reduce(arrays[index]))
    for total in sums:
        assert total.shape == shape and total.dtype == np.float32
        np.testing.assert_allclose(total, np.sum(before, 0), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(total, sums[0])  # to the last bit, or the workers would drift apart
    np.testing.assert_array_equal(arrays, before)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
def test_types(dtype):
    with workers(2) as rings:
        sums = together(rings, lambda index, ring: ring.all_reduce(np.arange(5, dtype=dtype) + index))
    assert sums[0].dtype == dtype and sums[0].tolist() == [1, 3, 5, 7, 9]


def test_many_in_a_row_and_what_is_held_stays():
    """Results are used again, but not those that somebody holds; and what is written into one goes to nobody else."""
    with workers(3) as rings:

        def work(index: int, ring: Ring) -> list[float]:
            kept = ring.all_reduce(np.full(100_000, index, np.float32))
            for round_ in range(20):
                total = ring.all_reduce(np.full(100_000, index + round_, np.float32))
                assert np.all(total == 3 + 3 * round_)
                total[:] = -1
            assert np.all(kept == 3)
            return [len(arrays) for arrays in ring._buffers._blocks.values()]

        assert together(rings, work) == [[3]] * 3  # one held, two in turn


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_everyone_has_the_arrays_of_all(size, dtype):
    """Of unequal lengths, one of them empty, one large; many in a row, and sums between them."""
    lengths = [0, 7, 1_000_000, 3, 1][:size]
    arrays = [
        np.random.default_rng(index).integers(0, 200, length).astype(dtype) for index, length in enumerate(lengths)
    ]
    with workers(size) as rings:

        def work(index: int, ring: Ring) -> list[np.ndarray]:
            for round_ in range(3):
                found = ring.all_gather(np.full(index + round_, index, dtype))
                assert [part.tolist() for part in found] == [[worker] * (worker + round_) for worker in range(size)]
                assert ring.all_reduce(np.ones(1))[0] == size
            return ring.all_gather(arrays[index])

        for found in together(rings, work):
            assert [part.dtype for part in found] == [dtype] * size
            for part, array in zip(found, arrays, strict=True):
                np.testing.assert_array_equal(part, array)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("what", ["all_reduce", "all_gather"])
def test_a_neighbour_that_goes(size, what):
    with workers(size) as rings:
        rings[1].close()

        def work(index: int, ring: Ring) -> None:
            with pytest.raises(RingBrokenError, match="the connection of worker 0 to worker 1 has broken"):
                getattr(ring, what)(np.zeros(10_000_000, np.float32))

        together([rings[0]], work)


def test_broken_off_from_another_thread():
    with workers(2) as rings:
        threading.Timer(0.2, rings[0].close).start()
        with pytest.raises(RingBrokenError):
            rings[0].all_reduce(np.zeros(3))  # the other one never comes


@pytest.mark.parametrize("use", [Ring.all_reduce, Ring.all_gather])
def test_after_the_end(use):
    with workers(2) as rings:
        rings[0].close()
        with pytest.raises(RingBrokenError):
            use(rings[0], np.zeros(3))


def test_a_stranger_is_sent_away():
    listener = Listener()
    stranger = socket.create_connection(("127.0.0.1", listener.port))
    stranger.sendall(b"x" * 32)
    friend = connect("127.0.0.1", listener.port, listener.token)
    accepted = listener.accept()
    friend.sendall(b"hello")
    assert accepted.recv(5) == b"hello"
    stranger.settimeout(5)
    assert stranger.recv(1) == b""
    for one in (listener, stranger, friend, accepted):
        one.close()


def test_nobody_listens():
    listener = Listener()
    listener.close()
    started = time.monotonic()
    with pytest.raises(OSError):
        connect("127.0.0.1", listener.port, listener.token)
    assert time.monotonic() - started < 15


def test_tensorflow_takes_the_sum_without_a_copy():
    with workers(2) as rings:
        sums = together(rings, lambda index, ring: ring.all_reduce(np.zeros(1001, np.float32)))
    assert all(total.ctypes.data % 64 == 0 and total.flags.c_contiguous for total in sums)


@pytest.mark.parametrize("size", [2, 4])
def test_workers_find_each_other(size):
    boards: list[queue.SimpleQueue[list[object]]] = [queue.SimpleQueue() for _ in range(size)]

    def join(index: int) -> Ring | None:
        return connect_ring(index, ["127.0.0.1:1"] * size, boards[index - 1].put, boards[index].get)

    with ThreadPoolExecutor(size) as threads:
        rings = list(threads.map(join, range(size)))
    sums = together(rings, lambda index, ring: ring.all_reduce(np.array([1.0, index])))
    assert [total.tolist() for total in sums] == [[size, size * (size - 1) / 2]] * size
    for ring in rings:
        ring.close()


def test_a_neighbour_whose_ports_are_closed():
    listener = Listener()
    listener.close()
    assert (
        connect_ring(0, ["127.0.0.1:1", "[::1]:1"], lambda where: None, lambda: [listener.port, listener.token]) is None
    )
