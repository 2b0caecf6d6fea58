"""What actions see of the run they belong to."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hook_runs import OpenRun, train

from moxing.tensorflow.executor.actions.context import RunContext


def context(*arguments, **settings) -> RunContext:
    """The context of a run."""
    found = []
    train(lambda batch, w: [OpenRun(found.append)], *arguments, **settings)
    (run,) = found
    return run


def test_a_training_counts_the_steps_of_earlier_runs(tmp_path):
    first = context(tmp_path, steps=3)
    assert (first.training, first.asynchronous, first.steps_before) == (True, False, 0)
    second = context(tmp_path, steps=5)
    assert (second.start.global_step, second.steps_before) == (3, 3)


def test_an_evaluation_counts_its_own_steps(tmp_path):
    context(tmp_path, steps=3)
    run = context(tmp_path, steps=2, mode="EVAL")
    assert (run.training, run.asynchronous) == (False, False)
    assert (run.start.global_step, run.steps_before) == (3, 0)


def test_without_log_dir_nothing_can_be_written(tmp_path):
    without, writing = context(steps=1), context(tmp_path, steps=1)
    assert without.keeper is None and without.events is None
    assert writing.keeper is not None and writing.events is not None


def test_a_context_cannot_be_changed():
    run = context(steps=1)
    with pytest.raises(FrozenInstanceError):
        run.keeper = None
