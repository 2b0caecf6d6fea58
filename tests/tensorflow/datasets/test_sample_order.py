"""The order of samples: every epoch a permutation that follows from seed and epoch alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moxing.tensorflow.datasets.sample_order import SampleOrder

SEEDS = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31))


def epoch_of(order: SampleOrder, epoch: int) -> list[int]:
    return order.numbers(np.arange(epoch * order.count, (epoch + 1) * order.count)).tolist()


@given(st.integers(1, 300), SEEDS, st.integers(0, 10**9))
def test_every_epoch_is_a_permutation(count, seed, epoch):
    assert sorted(epoch_of(SampleOrder(count, seed=seed), epoch)) == list(range(count))


@given(st.integers(1, 200), SEEDS, st.lists(st.integers(0, 2000), min_size=1, max_size=40))
def test_a_position_has_its_number_whatever_was_asked_before(count, seed, positions):
    asked_alone = [int(SampleOrder(count, seed=seed).numbers(np.array([position]))[0]) for position in positions]
    assert SampleOrder(count, seed=seed).numbers(np.array(positions)).tolist() == asked_alone


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), SEEDS, st.integers(0, 5), st.integers(1, 200))
def test_with_runs_every_number_comes_once_and_neighbours_stay_near(runs, seed, epoch, mixed):
    count = sum(runs)
    order = SampleOrder(count, seed=seed, runs=runs, shuffled_over=mixed)
    numbers = np.array(epoch_of(order, epoch))
    assert sorted(numbers.tolist()) == list(range(count))
    if mixed >= count:
        return
    run_of = np.repeat(np.arange(len(runs)), runs)
    # A stretch of `mixed` positions holds whole runs, but for the one at either end.
    stretches = [set(run_of[numbers[start : start + mixed]]) for start in range(0, count, mixed)]
    for before, middle, after in zip(stretches, stretches[1:], stretches[2:], strict=False):
        assert len(middle & (before | after)) <= 2
    # And a run lies in neighbouring stretches only.
    stretch_of = np.empty(count, np.int64)
    stretch_of[numbers] = np.arange(count) // mixed
    for run, length in enumerate(runs):
        spread = np.ptp(stretch_of[run_of == run])
        assert spread <= (length - 1) // mixed + 1


@pytest.mark.parametrize("runs", [None, [10] * 20])
def test_epochs_and_seeds_differ(runs):
    def order(seed):
        return SampleOrder(200, seed=seed, runs=runs, shuffled_over=50)

    orders = [epoch_of(order(seed), epoch) for seed in ((1, 1), (1, 2), (2, 1)) for epoch in (0, 1, 7)]
    assert len({tuple(numbers) for numbers in orders}) == len(orders)
    assert epoch_of(order((1, 1)), 7) == orders[2]


def test_mixing_is_thorough_inside_a_stretch():
    order = SampleOrder(6400, seed=(1, 1), runs=[64] * 100, shuffled_over=640)
    numbers = np.array(epoch_of(order, 0)[:640])
    assert len(set(numbers // 64)) == 10
    assert np.mean(np.abs(np.diff(numbers)) == 1) < 0.05


def test_without_a_seed_the_order_is_that_of_the_samples():
    order = SampleOrder(3, epochs=2)
    assert order.numbers(np.arange(6)).tolist() == [0, 1, 2, 0, 1, 2]
    assert order.total == 6
    assert SampleOrder(3).total is None


@given(
    st.integers(1, 60),
    st.integers(1, 3),
    st.one_of(st.none(), SEEDS),
    st.integers(1, 9),
)
def test_the_workers_shares_are_the_whole(count, epochs, seed, workers):
    """Worker by worker, in turns, and none more than one ahead of another: also over the end of an epoch."""
    order = SampleOrder(count, epochs=epochs, seed=seed)
    whole = order.numbers(np.arange(order.total)).tolist()
    shares = [order.shard(workers, index) for index in range(workers)]
    assert sum(share.total for share in shares) == order.total
    assert max(share.total for share in shares) - min(share.total for share in shares) <= 1
    parts = [share.numbers(np.arange(share.total)).tolist() for share in shares]
    assert [parts[position % workers][position // workers] for position in range(order.total)] == whole


@given(st.integers(1, 60), SEEDS, st.integers(2, 5), st.lists(st.integers(0, 500), min_size=1, max_size=20))
def test_a_share_without_end(count, seed, workers, positions):
    """A position of a share has its number whatever was asked before, as one of the whole does."""
    order = SampleOrder(count, seed=seed)
    for index in range(workers):
        share = order.shard(workers, index)
        assert share.total is None
        expected = order.numbers(np.array(positions) * workers + index)
        assert share.numbers(np.array(positions)).tolist() == expected.tolist()


def test_more_workers_than_samples():
    order = SampleOrder(2, epochs=1, seed=(3, 4))
    assert [order.shard(4, index).total for index in range(4)] == [1, 1, 0, 0]
    assert order.shard(4, 3).numbers(np.arange(0)).tolist() == []


def test_shares_keep_runs_together():
    """Mixed over stretches of the disk, a worker still reads from few runs at a time."""
    order = SampleOrder(6400, seed=(1, 1), runs=[64] * 100, shuffled_over=640).shard(2, 1)
    assert len(set(order.numbers(np.arange(320)) // 64)) == 10
