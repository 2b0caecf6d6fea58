"""What workers send of their gradients, compared with plain NumPy; over real sockets, without TensorFlow."""

from __future__ import annotations

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from moxing.tensorflow.cluster.ring import Ring
from moxing.tensorflow.optimizer.wrappers.compression import settings
from moxing.tensorflow.parallel.sparse_exchange import SparseExchange

STEPS = 20
SIZES = (60, 7, 1)


@contextlib.contextmanager
def rings(size):
    pairs = [socket.socketpair() for _ in range(size)]
    made = [Ring(index, size, pairs[index - 1][1], pairs[index][0]) for index in range(size)]
    try:
        yield made
    finally:
        for ring in made:
            ring.close()


def gradients(workers, dtype=np.float64):
    random = np.random.RandomState(3)
    return [[[random.randn(size).astype(dtype) for size in SIZES] for _ in range(workers)] for _ in range(STEPS)]


def stated(given, momentum, nesterov, masking, sparsity, smallest):
    """The weights after all steps at rate 0.1, by the formulas of the paper."""
    workers = len(given[0])
    weights = [np.zeros(size) for size in SIZES]
    u = [[np.zeros(size) for size in SIZES] for _ in range(workers)]
    v = [[np.zeros(size) for size in SIZES] for _ in range(workers)]
    for step in given:
        for place, size in enumerate(SIZES):
            total = np.zeros(size)
            for worker in range(workers):
                g = step[worker][place]
                if nesterov:
                    u[worker][place] = momentum * (u[worker][place] + g)
                    v[worker][place] = v[worker][place] + u[worker][place] + g
                else:
                    u[worker][place] = momentum * u[worker][place] + g
                    v[worker][place] = v[worker][place] + u[worker][place]
                if size * 8 < smallest:
                    mask = np.ones(size, bool)
                else:
                    count = max(1, round(size * (1 - sparsity)))
                    mask = np.abs(v[worker][place]) >= np.sort(np.abs(v[worker][place]))[-count]
                total += np.where(mask, v[worker][place], 0)
                v[worker][place] = np.where(mask, 0, v[worker][place])
                if masking and size * 8 >= smallest:
                    u[worker][place] = np.where(mask, 0, u[worker][place])
            weights[place] -= 0.1 * total
    return weights


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("kind", ["vanilla", "nesterov"])
@pytest.mark.parametrize("masking", [True, False])
@pytest.mark.parametrize(("momentum", "kilobytes"), [(0.9, 0), (0.0, 0), (0.9, 1)])
def test_twenty_steps_are_those_of_the_paper(workers, kind, masking, momentum, kilobytes):
    given = gradients(workers)
    how = settings("0.9", kind, momentum, masking, min_size_in_kb=kilobytes)

    def train(worker, ring):
        exchange = SparseExchange(ring)
        takes = [exchange.add(size, np.dtype(np.float64), how) for size in SIZES]
        weights = [np.zeros(size) for size in SIZES]
        for number, step in enumerate(given):
            taken = sum(take(each, number, 8) for take, each in zip(takes, step[worker], strict=True))
            for weight, total in zip(weights, exchange.all_reduce(taken), strict=True):
                weight -= 0.1 * total
        return weights

    with rings(workers) as made, ThreadPoolExecutor(workers) as threads:
        trained = list(threads.map(train, range(workers), made))
    expected = stated(given, momentum, kind == "nesterov", masking, 0.9, 1024 * kilobytes)
    for weights in trained:
        for place, weight in enumerate(weights):
            np.testing.assert_array_equal(weight, trained[0][place])
            np.testing.assert_allclose(weight, expected[place], rtol=1e-6, atol=1e-9)
            assert np.abs(weight).max() > 0.1


def test_half_a_percent_of_the_bytes():
    """The variables of a network: 25 M parameters in large ones, and small ones beside them."""

    class Alone:
        def all_reduce(self, values):
            return values

        def all_gather(self, values):
            return [values]

    exchange = SparseExchange(Alone())
    sizes = [4_000_000, 1_000_003, 2048, 512, 64]
    takes = [exchange.add(size, np.dtype(np.float32), settings(momentum=0.9)) for size in sizes]
    random = np.random.RandomState(0)
    exchange.all_reduce(
        sum(take(random.randn(size).astype(np.float32), 0, 1) for take, size in zip(takes, sizes, strict=True))
    )
    assert exchange.sent < 0.005 * 4 * sum(sizes)
