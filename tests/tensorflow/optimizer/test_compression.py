"""What workers keep and send of their gradients, beside the same in plain NumPy; around real sockets, without TF."""

from __future__ import annotations

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import moxing.tensorflow as mox
from moxing.tensorflow.cluster.ring import Ring
from moxing.tensorflow.optimizer.compression import Compressor, settings
from moxing.tensorflow.parallel.dgc import Exchange

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
        exchange = Exchange(ring)
        takes = [exchange.add(size, np.dtype(np.float64), how) for size in SIZES]
        weights = [np.zeros(size) for size in SIZES]
        for number, step in enumerate(given):
            taken = sum(take(each, number, 8) for take, each in zip(takes, step[worker], strict=True))
            for weight, total in zip(weights, exchange.trade(taken), strict=True):
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


def test_all_that_was_added_is_sent_or_kept():
    worker = Compressor(1000, np.dtype(np.float32))
    random, total, sent = np.random.RandomState(0), np.zeros(1000), np.zeros(1000)
    for _ in range(30):
        gradient = random.randn(1000).astype(np.float32)
        total += gradient
        places, values = worker.select(gradient, 0.99)
        assert np.all(np.diff(places.astype(int)) > 0)
        sent[places] += values
    np.testing.assert_allclose(sent + worker._kept, total, atol=1e-4)


@pytest.mark.parametrize("shape", [(64, 3, 3, 512), (1000, 2048), (1_000_003,)])
@pytest.mark.parametrize("sparsity", [0.75, 0.999])
def test_a_sampled_threshold_sends_about_as_many(shape, sparsity):
    """Also where channels, the last dimension, are of very different sizes."""
    random = np.random.RandomState(0)
    size = int(np.prod(shape))
    worker = Compressor(size, np.dtype(np.float32), 0.9)
    scales = np.geomspace(1e-3, 10, shape[-1]).astype(np.float32)
    for _ in range(4):
        places, values = worker.select(random.randn(*shape).astype(np.float32) * scales, sparsity)
        assert 0.6 < places.size / (size * (1 - sparsity)) <= 1.26
        assert values.size == places.size and places.dtype == np.uint32


def test_an_unlucky_sample_does_not_send_everything():
    worker = Compressor(1_000_000, np.dtype(np.float32))
    gradient = np.ones(1_000_000, np.float32)
    gradient[1::13] = 0  # what is looked at is of no use: every 13th, which does not divide the size
    places, _ = worker.select(gradient, 0.999)
    assert 0 < places.size <= 1250


def test_zeros_are_not_sent_and_what_is_not_finite_is():
    worker = Compressor(100, np.dtype(np.float32))
    places, values = worker.select(np.zeros(100, np.float32), 0.5)
    assert places.size == values.size == 0
    gradient = np.ones(100, np.float32)
    gradient[7] = np.nan
    places, values = worker.select(gradient, 0.9)
    assert 7 in places and np.isnan(values).any()


def test_half_a_percent_of_the_bytes():
    """The variables of a network: 25 M parameters in large ones, and small ones beside them."""

    class Alone:
        def add(self, values):
            return values

        def gather(self, values):
            return [values]

    exchange = Exchange(Alone())
    sizes = [4_000_000, 1_000_003, 2048, 512, 64]
    takes = [exchange.add(size, np.dtype(np.float32), settings(momentum=0.9)) for size in sizes]
    random = np.random.RandomState(0)
    exchange.trade(
        sum(take(random.randn(size).astype(np.float32), 0, 1) for take, size in zip(takes, sizes, strict=True))
    )
    assert exchange.sent < 0.005 * 4 * sum(sizes)


def test_settings_come_from_arguments_then_flags_then_are_the_usual_ones():
    usual = settings()
    assert (usual.sparsities, usual.momentum, usual.nesterov, usual.masking) == ((0.999,), None, None, True)
    assert settings(total_samples=50).sparsities == (0.75, 0.9375, 0.984375, 0.996, 0.999)
    mox.set_flag("dgc_momentum", 0.8)
    mox.set_flag("dgc_momentum_type", "nesterov")
    mox.set_flag("dgc_sparsity_strategy", "0.5, 0.9")
    mox.set_flag("dgc_total_samples", 100)
    mox.set_flag("dgc_momentum_factor_masking", False)
    mox.set_flag("min_size_in_kb", 7)
    found = settings(momentum=0.7)
    assert (found.sparsities, found.momentum, found.nesterov, found.masking) == ((0.5, 0.9), 0.7, True, False)
    assert (found.total_samples, found.min_bytes) == (100, 7168)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sparsity_strategy": "0.7,x", "total_samples": 5}, "'x' is no sparsity"),
        ({"sparsity_strategy": "1"}, "'1' is no sparsity"),
        ({"sparsity_strategy": "0.7,0.9"}, "needs --dgc_total_samples"),
        ({"momentum": 1.0}, r"dgc\(momentum=1.0\): expected a number from 0 to below 1"),
        ({"momentum": True}, "expected a number"),
        ({"momentum_type": "fast"}, "expected vanilla or nesterov"),
        ({"momentum_factor_masking": "yes"}, "expected True or False"),
        ({"total_samples": 0}, "an integer from 1"),
        ({"min_size_in_kb": -1}, "an integer from 0"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        settings(**arguments)


def test_a_bad_flag_is_named():
    mox.set_flag("dgc_momentum", 2.0)
    with pytest.raises(ValueError, match="--dgc_momentum=2.0: expected"):
        settings()
