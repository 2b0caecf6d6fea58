"""What a group of steps reports."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hook_runs import OpenRun, train

import moxing.tensorflow as mox
from moxing.tensorflow.executor.actions.action import Action
from moxing.tensorflow.executor.build.ledger import LedgerValues
from moxing.tensorflow.executor.loop.progress import Aside, Progress


def test_a_progress_is_finite_and_not_at_the_end_by_default():
    progress = Progress(3, LedgerValues(samples=6, steps=3, last={}, means={}))
    assert (progress.finite, progress.ended, progress.halt, progress.next_steps) == (True, False, 0, 1)
    assert (progress.summary, progress.probes, progress.guard) == (None, {}, 0)
    with pytest.raises(FrozenInstanceError):
        progress.ended = True


def test_asides_come_only_with_the_steps_that_want_them(tmp_path):
    seen = {}

    class Wants(Action):
        def steps_until(self, done):
            return 1

        def wants(self, done):
            return [Aside.SUMMARY, Aside.PROBES] if done == 2 else []

        def act(self, done, progress):
            seen[done] = progress

    hooks = lambda batch, w: [OpenRun(lambda run: Wants()), mox.GradientNormHook(1000)]  # noqa: E731
    train(hooks, tmp_path, steps=3, save_summary_steps=1000)
    # Step 0 is due for the summaries and the norm themselves.
    assert {done: (bool(each.summary), dict(each.probes)) for done, each in seen.items()} == {
        1: (True, {"gradient_norm": 1.0}),
        2: (True, {"gradient_norm": 1.0}),
        3: (False, {}),
    }
    assert [each.global_step for each in seen.values()] == [1, 2, 3]
