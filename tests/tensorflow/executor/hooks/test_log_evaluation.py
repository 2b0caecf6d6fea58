"""The log lines of evaluations."""

from __future__ import annotations

from evaluation_runs import evaluated, run

import moxing.tensorflow as mox


def test_steps_of_the_documented_run(caplog):
    caplog.set_level("INFO")
    hooks = lambda batch, w: [mox.LogEvaluationMetricHook({"w": w}, 32, 1000, 10, 1, "[VALIDATION METRICS]")]  # noqa: E731
    run(hooks, steps=100)
    found = evaluated(caplog, "[VALIDATION METRICS]")
    assert found == [(31, "w: -32.000"), (63, "w: -64.000"), (95, "w: -96.000")]
