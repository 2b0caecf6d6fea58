"""The progress bar of a run."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from line_problem import number_input, run, step_rate

from moxing.tensorflow.executor.loop import progress_bar as progress
from moxing.tensorflow.executor.loop.shown_rates import ShownRates


def test_the_bar_of_a_run_shows_the_rate(monkeypatch, capsys):
    shown = []
    original = progress.Bar.update

    def update(self, done, state):
        original(self, done, state)
        shown.append(self._display.tasks[0].fields["values"])

    monkeypatch.setattr(progress.Bar, "update", update)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    run(optimizer_fn=lambda: tf.train.GradientDescentOptimizer(step_rate()))
    assert shown[0] == "w 0  learning_rate 2"  # that of the next step


def test_without_a_terminal_nothing_is_fetched(monkeypatch):
    monkeypatch.setattr(ShownRates, "text", lambda self: pytest.fail("fetched"))
    assert run(input_fn=number_input).global_step == 3
