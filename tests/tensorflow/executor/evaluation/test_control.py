"""What evaluation hooks do to a run."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from evaluation_runs import evaluated, log_hook, run
from hook_runs import OpenRun, saved_steps, train

import moxing.tensorflow as mox
from moxing.tensorflow.executor.actions.action import Action
from moxing.tensorflow.executor.evaluation.control import RunControl


@pytest.mark.parametrize("update", ["parameter_server", "replicated"])
def test_two_towers(update, tmp_path, caplog):
    """The evaluation takes every sample once, and what is restored reaches both towers."""
    caplog.set_level("INFO")
    mox.set_flag("num_gpus", 2)
    mox.set_flag("variable_update", update)

    def hooks(batch, w):
        best = mox.EarlyStoppingHook({"x": tf.abs(w + 5.0)}, "x", 4, 8, patience=2, prefix="[E]", restore_best=True)
        return [best, *log_hook(7, period=2)(batch, w)]

    result = run(hooks, tmp_path, steps=100)
    assert result.global_step == 8
    assert [text.split()[1] for _, text in evaluated(caplog, "[V]")] == ["3.000"] * 4
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == -4.0


class Notified(Action):
    """Counts how often the variables were replaced."""

    changes = 0

    def variables_changed(self):
        self.changes += 1


def open_control(test, log_dir=None):
    """Calls a test with the control of an open run, an action, and the run."""
    calls = []

    def look(run):
        notified = Notified()
        calls.append(run)
        test(RunControl(run, [notified]), notified, run)

    train(lambda batch, w: [OpenRun(look)], log_dir, steps=1)
    assert len(calls) == 1


def test_stop_ends_the_run_of_all_workers(caplog):
    def test(control, notified, run):
        assert not control.stopping
        control.stop("enough")
        assert control.stopping
        assert run.hooks.stop_requested and run.hooks.stopped_by_all

    open_control(test)
    assert "Training stops early: enough." in caplog.text


def test_the_best_variables_come_back_at_the_end(tmp_path):
    def test(control, notified, run):
        (w,) = tf.trainable_variables()
        run.session.run(w.assign(3.0))
        control.at_step(4)
        control.keep_best()
        assert saved_steps(tmp_path / "best") == [5]
        run.session.run(w.assign(7.0))
        control.finish()  # nobody asked for them yet
        assert (run.session.run(w), notified.changes) == (7.0, 0)
        control.restore_best()
        assert run.session.run(w) == 7.0
        control.finish()
        assert (run.session.run(w), notified.changes) == (3.0, 1)

    open_control(test, tmp_path)


def test_a_directory_keeps_the_last_ones(tmp_path):
    def test(control, notified, run):
        for step in (1, 2, 3):
            control.at_step(step)
            control.keep_best("two", most=2)

    open_control(test, tmp_path)
    assert saved_steps(tmp_path / "two") == [3, 4]


def test_best_variables_that_were_deleted(tmp_path, caplog):
    def test(control, notified, run):
        (w,) = tf.trainable_variables()
        run.session.run(w.assign(7.0))
        control.restore_best()
        control.finish()
        assert run.session.run(w) == 7.0

    open_control(test, tmp_path)
    assert f"The best variables are no longer in {tmp_path / 'best'}; keeping the last ones." in caplog.text


def test_the_rate_of_a_step_without_a_factor():
    def test(control, notified, run):
        with pytest.raises(ValueError, match="in inter_mode only: return it in TRAIN"):
            control.scale_learning_rate(0.5)

    open_control(test)
