"""Several run hooks in one run, and in modes other than TRAIN."""

from __future__ import annotations

import pytest
from events import scalars
from hook_runs import train

import moxing.tensorflow as mox


@pytest.mark.parametrize("towers", [1, 2])
def test_no_hook_asks_for_single_steps(towers, tmp_path, steppers):
    mox.set_flag("num_gpus", towers)
    ends = []

    def hooks(batch, w):
        return [
            mox.ThroughputHook(10),
            mox.GradientNormHook(10),
            mox.NanGuardHook({"w": w}, action="restore"),
            mox.ProfilerHook(start_step=5, steps=3),
            mox.RunEndHook(ends.append),
        ]

    train(hooks, tmp_path, steps=25, save_summary_steps=10)
    assert [stepper.many for stepper in steppers] == [True]
    assert [end.global_step for end in ends] == [25]
    assert len(list(tmp_path.glob("events*"))) == 1  # TensorBoard follows one file of a directory
    found = scalars(tmp_path)
    assert set(found) == {
        *("w", "learning_rate", "nan_guard_factor", "gradient_norm", "steps_per_sec", "samples_per_sec"),
    }
    assert sorted(found["gradient_norm"]) == [0, 10, 20]


def test_in_other_modes_they_leave_the_run_alone(tmp_path):
    train(lambda batch, w: [], tmp_path)
    ends = []

    def hooks(batch, w):
        restores = mox.NanGuardHook({"w": w / 0.0}, action="restore")
        return [mox.ThroughputHook(1), mox.GradientNormHook(1), restores, mox.RunEndHook(ends.append)]

    result = train(hooks, tmp_path, mode="EVAL", optimizer_fn=None)
    assert ends[0].reason == "end"
    assert ends[0].log_info == result.log_info == {"w": -10.0}
