"""The progress bar of an Estimator."""

from __future__ import annotations

import sys

import pytest
import tensorflow.compat.v1 as tf

from helpers.estimator_models import input_fn, make
from moxing.tensorflow.estimator import progress_hook

CONFIG = {"save_checkpoints_steps": 1000, "log_step_count_steps": 1000}


@pytest.fixture
def bars(monkeypatch):
    """What the bars of a terminal have shown: title, total, and the fields after each call."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = []
    original = progress_hook.ProgressHook.after_run

    def after_run(self, run_context, run_values):
        original(self, run_context, run_values)
        (task,) = self._display.tasks
        shown.append((task.description, task.total, task.completed, dict(task.fields)))

    monkeypatch.setattr(progress_hook.ProgressHook, "after_run", after_run)
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{"steps": 300}, {"max_steps": 300}])
def test_a_terminal_shows_steps_loss_and_speed(tmp_path, bars, arguments):
    make(tmp_path, **CONFIG).train(input_fn, **arguments)
    title, total, completed, fields = bars[-1]
    assert (title, total, completed) == ("train", 300, 300)
    assert fields["values"].startswith("loss 0.") and fields["rate"].endswith("steps/s")
    # The bar leaves the steps many per call.
    assert len(bars) < 100


@pytest.mark.slow
def test_a_resumed_training_starts_in_the_middle_of_the_bar(tmp_path, bars):
    make(tmp_path, **CONFIG).train(input_fn, steps=50)
    bars.clear()
    make(tmp_path, **CONFIG).train(input_fn, steps=50)
    assert bars[0][1:3] == (100, 51)


@pytest.mark.slow
def test_without_an_end_there_is_no_total(tmp_path, bars):
    make(tmp_path, **CONFIG).train(lambda: input_fn().take(40))
    assert {total for _, total, _, _ in bars} == {None}


@pytest.mark.slow
def test_the_bar_is_closed_after_an_error(tmp_path, bars):
    class Fails(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            raise ZeroDivisionError

    for _ in range(2):  # only one bar can be open at a time
        with pytest.raises(ZeroDivisionError):
            make(tmp_path, **CONFIG).train(input_fn, max_steps=50, hooks=[Fails()])


@pytest.mark.slow
def test_a_pipe_shows_no_bar(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_hook, "open_display", lambda *_: pytest.fail("a bar in a pipe"))
    make(tmp_path, **CONFIG).train(input_fn, max_steps=5)
