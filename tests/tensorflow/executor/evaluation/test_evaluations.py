"""Several evaluation hooks in one run."""

from __future__ import annotations

from evaluation_runs import evaluated, log_hook, run


def test_several_hooks(caplog):
    caplog.set_level("INFO")

    def hooks(batch, w):
        return [*log_hook(7, "[A]")(batch, w), *log_hook(None, "[B]", period=4, epochs=2)(batch, w)]

    run(hooks)
    assert [(step, text.split()[1]) for step, text in evaluated(caplog, "[A]")] == [(9, "3.000"), (19, "3.000")]
    assert [(step, text.split()[1]) for step, text in evaluated(caplog, "[B]")] == [(7, "4.500"), (15, "4.500")]
