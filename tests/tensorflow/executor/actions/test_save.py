"""When checkpoints are written, and what is not saved."""

from __future__ import annotations

import json

import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds
from hook_runs import OpenRun, saved, saved_steps, train

import moxing.tensorflow as mox
from moxing.tensorflow.executor import NotFiniteError
from moxing.tensorflow.executor.actions.action import NEVER, Action
from moxing.tensorflow.executor.actions.save import SaveAction
from moxing.tensorflow.executor.build.ledger import LedgerValues
from moxing.tensorflow.executor.loop.progress import Progress


def test_variables_not_finite_are_not_saved(tmp_path):
    """The loss itself is finite, its gradient is not: sqrt has an infinite slope at 0."""

    def model_fn(inputs, mode):
        w = tf.get_variable("net/w", shape=[2], initializer=tf.zeros_initializer())
        return mox.ModelSpec(loss=tf.reduce_sum(tf.sqrt(w)))

    text = error_of(NotFiniteError, model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1)
    assert holds(text, "Step 0", "net/w", str(tmp_path / "model.ckpt-0"))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-0")


def open_save(test, tmp_path, actions=(), **settings):
    """Calls a test with the `SaveAction` of an open run."""
    calls = []

    def look(run):
        calls.append(run)
        test(SaveAction(run, run.keeper, actions), run)

    train(lambda batch, w: [OpenRun(look)], tmp_path, steps=1, **settings)
    assert len(calls) == 1


def after(steps: int, **others) -> Progress:
    return Progress(steps, LedgerValues(samples=steps, steps=steps, last={}, means={}), **others)


def test_due_every_n_steps(tmp_path):
    def test(save, run):
        assert [save.steps_until(done) for done in (0, 3, 4)] == [4, 1, 4]
        save.act(3, after(3))
        assert saved_steps(tmp_path) == []
        save.act(4, after(4))
        assert saved_steps(tmp_path) == [4]
        save.finish(6, after(6))
        assert saved_steps(tmp_path) == [4, 6]

    open_save(test, tmp_path, save_model_steps=4)


def test_due_by_the_clock(tmp_path):
    def test(save, run):
        assert save.steps_until(3) == NEVER
        save.act(3, after(3))
        assert saved_steps(tmp_path) == [3]

    open_save(test, tmp_path, save_model_secs=1e-9)


def test_a_step_is_saved_once_unless_the_variables_change(tmp_path):
    def test(save, run):
        (w,) = tf.trainable_variables()
        save.save(4, after(4))
        run.session.run(w.assign(8.0))
        save.save(4, after(4))
        assert saved(tmp_path, 4) == 0.0
        save.variables_changed()
        save.save(4, after(4))
        assert saved(tmp_path, 4) == 8.0

    open_save(test, tmp_path)


def test_the_state_of_actions_is_saved(tmp_path):
    class Counts(Action):
        def state(self):
            return {"Counts": {"seen": 3}}

    def test(save, run):
        save.data_failed(5, after(5))
        content = json.loads((tmp_path / "model.ckpt-5.moxing.json").read_text())
        assert content["hooks"] == {"Counts": {"seen": 3}}

    open_save(test, tmp_path, [Action(), Counts()])


def test_variables_that_are_bad_from_the_start(tmp_path):
    def test(save, run):
        (w,) = tf.trainable_variables()
        run.session.run(w.assign(float("nan")))
        with pytest.raises(NotFiniteError, match=r"Before the first step: variables are NaN or infinite: w\."):
            save.save(0, after(0))
        run.session.run(w.assign(0.0))

    open_save(test, tmp_path)


def test_the_error_names_the_last_good_checkpoint(tmp_path):
    def test(save, run):
        (w,) = tf.trainable_variables()
        save.save(2, after(2))
        run.session.run(w.assign(float("nan")))
        with pytest.raises(NotFiniteError, match=r"Step 3: variables became NaN or infinite: w\. .*model\.ckpt-2;"):
            save.save(4, after(4))
        assert saved_steps(tmp_path) == [2]
        run.session.run(w.assign(0.0))

    open_save(test, tmp_path)
