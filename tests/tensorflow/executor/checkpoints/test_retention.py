"""Checkpoints that are kept for good: one every n hours."""

from __future__ import annotations

import pytest
from bad_runs import error_of, holds
from digits_model import prefixes, train

import moxing.tensorflow as mox
from moxing.framework.flags import FlagError
from moxing.tensorflow.executor.checkpoints.retention import KEY, Retention

HOUR = 3600.0


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self):
        self.hours = 0.0

    def __call__(self):
        return self.hours * HOUR


def saves(retention, clock, hours):
    """The checkpoints that are there after one save at each of these hours; a checkpoint is named after its hour."""
    there = []
    for clock.hours in hours:
        there, removed = retention.sort([*there, f"log/model.ckpt-{clock.hours:g}"])
        assert not set(there) & set(removed)
    return [float(prefix.rpartition("-")[2]) for prefix in there]


def test_one_every_two_hours_and_the_newest():
    clock = Clock()
    hours = [number / 2 for number in range(20)]  # every half hour, 0 to 9.5
    assert saves(Retention(2, 2.0, now=clock), clock, hours) == [2, 4, 6, 8, 9, 9.5]
    assert saves(Retention(2, None, now=clock), clock, hours) == [9, 9.5]


def test_a_resumed_run_goes_on():
    clock = Clock()
    first = Retention(1, 1.0, now=clock)
    assert saves(first, clock, [0, 1, 1.5]) == [1, 1.5]
    state = first.state()[KEY]
    clock.hours = 1.6
    second = Retention(1, 1.0, state, now=clock)
    there, removed = second.sort([f"log/model.ckpt-{name}" for name in ("1", "1.5", "1.6")])
    assert [prefix[-3:] for prefix in there] == ["t-1", "1.6"] and removed == ["log/model.ckpt-1.5"]
    # Without the flag nothing more is kept, and what was kept stays.
    third = Retention(1, None, state, now=clock)
    assert third.sort([f"log/model.ckpt-{name}" for name in ("1", "1.6", "9")])[1] == ["log/model.ckpt-1.6"]
    assert third.state()[KEY]["kept"] == ["model.ckpt-1"]


@pytest.mark.slow
def test_a_run_keeps_them(tmp_path):
    mox.set_flag("keep_checkpoint_max", 2)
    mox.set_flag("keep_checkpoint_every_n_hours", 1000)
    train(tmp_path, 20, save_model_steps=4)
    assert prefixes(tmp_path) == [16, 20]
    mox.set_flag("keep_checkpoint_every_n_hours", 1e-9)  # less than the time of a save
    train(tmp_path / "all", 20, save_model_steps=4)
    assert prefixes(tmp_path / "all") == [0, 4, 8, 12, 16, 20]
    mox.set_flag("keep_checkpoint_every_n_hours", None)
    train(tmp_path / "all", 36, save_model_steps=4)
    assert prefixes(tmp_path / "all") == [0, 4, 8, 12, 32, 36]


@pytest.mark.parametrize("hours", [0, -1, "nan"])
def test_wrong_hours(tmp_path, hours):
    mox.set_flag("keep_checkpoint_every_n_hours", hours)
    assert holds(error_of(FlagError, log_dir=tmp_path), "--keep_checkpoint_every_n_hours=", "above 0")
