"""The periods of actions, the defaults of their methods, and the error of a run that diverged."""

from __future__ import annotations

import pytest

from moxing.tensorflow.executor.actions.action import NEVER, Action, NotFiniteError, until_count, until_index
from moxing.tensorflow.executor.build.ledger import LedgerValues
from moxing.tensorflow.executor.loop.progress import Progress

PROGRESS = Progress(1, LedgerValues(samples=1, steps=1, last={}, means={}))


@pytest.mark.parametrize("period", [1, 2, 3, 10])
def test_until_index_leads_to_steps_whose_index_is_a_multiple(period):
    """Whatever the count is, the next due step is the first one with such an index."""
    for done in range(25):
        due = done + until_index(done, period)
        assert (due - 1) % period == 0
        assert not [count for count in range(done + 1, due) if (count - 1) % period == 0]


@pytest.mark.parametrize("period", [1, 2, 3, 10])
def test_until_count_leads_to_counts_that_are_a_multiple(period):
    for done in range(25):
        due = done + until_count(done, period)
        assert due % period == 0
        assert not [count for count in range(done + 1, due) if count % period == 0]


def test_no_period_is_never_due():
    assert until_index(7, 0) == until_count(7, 0) == until_count(7, None) == NEVER


def test_an_action_does_nothing_by_default():
    action = Action()
    assert action.steps_until(5) == NEVER
    assert not action.wants(5)
    assert action.state() == {}
    assert action.recover(NotFiniteError("Step 5: the loss is NaN.")) is False
    action.act(5, PROGRESS)
    action.finish(5, PROGRESS)
    action.pause(1.0)
    action.variables_changed()
    action.data_failed(5, PROGRESS)


def test_not_finite_error_names_the_last_checkpoint():
    error = NotFiniteError("Step 5: the loss is NaN.", "/log/model.ckpt-4")
    assert str(error).startswith("Step 5: the loss is NaN. The last good checkpoint is /log/model.ckpt-4; ")
    assert error.what == "Step 5: the loss is NaN."
    assert "No checkpoint was written; " in str(NotFiniteError("Step 5: the loss is NaN."))
