"""The dataclasses that go into a strategy and come out of it."""

from __future__ import annotations

import dataclasses

import pytest

from moxing.tensorflow.parallel import TrainSetup, TrainStep
from moxing.tensorflow.parallel.train_step import HOOK, SIGNAL


def test_results_are_frozen_and_have_defaults():
    step = TrainStep("op", ["optimizer"], [[("gradient", "variable")]])
    assert (step.flush, step.halt, step.next_steps, step.reached) == (None, None, None, None)
    setup = TrainSetup([], [], [], "global_step")
    assert setup.max_steps > 10**18 and setup.batch_size is None
    for one, name in ((step, "halt"), (setup, "max_steps")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, 1)
    assert 0 < HOOK < SIGNAL
