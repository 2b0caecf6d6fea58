"""The user's hooks: when they are called, what they may fetch, feed and stop."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from small_runs import Recorder, falling, messages, numbers, run, saved, scalar

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks import FeedSessionRunHook


@pytest.fixture(autouse=True)
def info_lines(caplog):
    caplog.set_level("INFO", logger="tensorflow")


class Aggregative(Recorder, mox.AggregativeSessionRunHook):
    def support_aggregation(self):
        return False

    def support_sync_workers(self):
        return False

    def run_inter_mode(self):
        return False


@pytest.mark.parametrize("kind", [Recorder, Aggregative])
@pytest.mark.parametrize("mode", ["TRAIN", "EVAL", "PREDICT"])
def test_hook_calls(kind, mode, tmp_path):
    hooks = []

    def model_fn(inputs, mode):
        w = scalar()
        hooks.append(kind(fetches={"n": inputs[0]}))
        return mox.ModelSpec(loss=w, log_info={"w": w}, output_info={"w": w}, hooks=[hooks[-1]])

    run(log_dir=tmp_path)
    run(mode, model_fn=model_fn, log_dir=tmp_path if mode != "TRAIN" else None, output_fn=len)
    (hook,) = hooks
    assert hook.calls == ["begin", "created", *["before", "after"] * 3, "end"]
    assert [values["n"].tolist() for values in hook.values] == [[0, 1], [2, 3], [4, 5]]


def test_hooks_at_the_end_of_the_data():
    hook = Recorder()

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=falling(scalar(), inputs), hooks=[hook])

    result = run(model_fn=model_fn, input_fn=numbers(4), max_number_of_steps=99)
    assert result.global_step == 2
    assert hook.calls.count("after") == 2
    assert hook.calls[-1] == "end"


def test_hooks_that_look_at_no_step_do_not_force_single_steps():
    seen = []

    class Ends(tf.train.SessionRunHook):
        def begin(self):
            seen.append(tf.get_variable("added_by_hook", initializer=5.0))

        def after_create_session(self, session, coord):
            seen.append(session.run(seen[0]))

        def end(self, session):
            seen.append(int(session.run(tf.train.get_global_step())))

    run(model_fn=lambda inputs, mode: mox.ModelSpec(loss=scalar(), hooks=[Ends()]), max_number_of_steps=30)
    assert seen[1:] == [5.0, 30]


def test_feed_hook():
    """The manual's §4.5.1: a placeholder in model_fn, fed by a hook."""

    def model_fn(inputs, mode):
        w = scalar()
        x = tf.placeholder(tf.float32, [])
        y = tf.placeholder_with_default(tf.constant(0.0), [])
        hooks = [FeedSessionRunHook(feed_dict={x: 2.0}), FeedSessionRunHook({y: 1.0})]
        return mox.ModelSpec(loss=w * (x + y), log_info={"w": w, "x": x}, hooks=hooks)

    result = run(model_fn=model_fn)
    assert result.log_info == {"w": -6.0, "x": 2.0}
    assert [getattr(FeedSessionRunHook({}), name)() for name in (
        "support_aggregation", "support_sync_workers", "run_inter_mode")] == [False] * 3  # fmt: skip


def test_hook_that_feeds_another_value_every_step():
    def model_fn(inputs, mode):
        x = tf.placeholder(tf.float32, [])
        w = scalar()
        hook = Aggregative(feed=lambda step: {x: float(step)})
        return mox.ModelSpec(loss=w * x, log_info={"w": w}, hooks=[hook])

    assert run(model_fn=model_fn, max_number_of_steps=5).log_info["w"] == -(0 + 1 + 2 + 3)


def test_request_stop(tmp_path):
    hook = Recorder(stop_at=2)
    other = Recorder()

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[hook, other])

    result = run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=50)
    assert result.global_step == 2
    assert saved(tmp_path)["global_step"] == 2
    assert hook.calls[-1] == other.calls[-1] == "end"
    assert len(other.values) == 2


def test_request_stop_before_the_run():
    class Stop(tf.train.SessionRunHook):
        def before_run(self, run_context):
            run_context.request_stop()

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[Stop()])

    assert run(model_fn=model_fn, max_number_of_steps=50).global_step == 1


def test_an_error_in_a_hook_reaches_the_caller():
    class Broken(Recorder):
        def after_run(self, run_context, run_values):
            raise KeyError("mine")

    hook = Broken()
    with pytest.raises(KeyError, match="mine"):
        run(model_fn=lambda inputs, mode: mox.ModelSpec(loss=scalar(), hooks=[hook]))
    assert "end" not in hook.calls


def test_stop_at_step_hook_of_tensorflow():
    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[tf.train.StopAtStepHook(last_step=4)])

    assert run(model_fn=model_fn, max_number_of_steps=50).global_step == 4


def test_logging_hook_of_tensorflow(caplog):
    def model_fn(inputs, mode):
        w = scalar()
        return mox.ModelSpec(loss=w, hooks=[tf.train.LoggingTensorHook({"mine": w}, every_n_iter=2)])

    run(model_fn=model_fn, max_number_of_steps=4)
    assert len([line for line in messages(caplog) if line.startswith("mine = ")]) == 2


@pytest.mark.parametrize("with_saver", [True, False])
def test_checkpoint_saver_hook_subclass(with_saver, tmp_path):
    """Found in the wild: a subclass of TensorFlow's own saver hook, writing to a directory of its own."""

    class Saver(tf.train.CheckpointSaverHook):
        saves = 0

        def _save(self, session, step):
            type(self).saves += 1
            return super()._save(session, step)

    def model_fn(inputs, mode):
        w = scalar()
        saver = tf.train.Saver() if with_saver else None
        return mox.ModelSpec(loss=w, hooks=[Saver(str(tmp_path / "own"), save_steps=2, saver=saver)])

    assert run(model_fn=model_fn, log_dir=tmp_path / "log", max_number_of_steps=4).global_step == 4
    assert Saver.saves >= 3
    assert saved(tmp_path / "own")["w"] == saved(tmp_path / "log")["w"] == -4
