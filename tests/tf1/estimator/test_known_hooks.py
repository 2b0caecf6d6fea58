"""How many steps may run before a hook must be called again."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow import estimator
from moxing.tf1.estimator import known_hooks


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step()
        yield graph


def in_session(hook, before=0, steps=()):
    """The limits before each of the runs, when each run does as many steps as the limit allows."""
    step = tf.train.get_global_step()
    amount = tf.placeholder(tf.int64, [])
    advance = step.assign_add(amount)
    now, limits = before, []
    with tf.train.MonitoredSession(hooks=[hook, limit := _Limit(hook)]) as session:
        for wanted in steps:
            limit.now = now
            session.run(advance, {amount: wanted})
            limits.append(limit.seen)
            now += wanted
    return limits


class _Limit(tf.train.SessionRunHook):
    """Asks for the limit after `before_run` of the other hook, and reports the steps that it has not seen."""

    now = seen = 0

    def __init__(self, hook):
        self._hook = hook

    def before_run(self, run_context):
        self.seen = known_hooks.steps_until(self._hook, self.now)


def test_logging_is_called_at_its_iterations(graph, tmp_path):
    hook = tf.train.LoggingTensorHook({"a": tf.constant(1)}, every_n_iter=10)
    hook.begin()
    hook.before_run(None)
    assert known_hooks.steps_until(hook, 0) == 1  # it prints the first step
    hook.after_run(None, _Results({"a": 1}))
    hook.before_run(None)
    assert known_hooks.steps_until(hook, 1) == 9
    known_hooks.skip(hook, 8)
    hook.after_run(None, _Results({}))
    assert hook.before_run(None) is not None  # iteration 10
    assert known_hooks.steps_until(hook, 10) == 1


class _Results:
    def __init__(self, results):
        self.results = results


def test_a_stop_and_a_checkpoint_are_not_passed(graph, tmp_path):
    assert known_hooks.steps_until(tf.train.StopAtStepHook(last_step=100), 40) == 60
    assert known_hooks.steps_until(tf.train.StopAtStepHook(last_step=100), 100) == 1
    saver = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=50)
    saver._timer.update_last_triggered_step(20)
    assert known_hooks.steps_until(saver, 30) == 40
    assert known_hooks.steps_until(tf.train.CheckpointSaverHook(str(tmp_path), save_secs=60), 3) == 1
    counter = tf.train.StepCounterHook(every_n_steps=None, every_n_secs=10)
    counter._timer.update_last_triggered_step(3)
    assert known_hooks.steps_until(counter, 30) == known_hooks.ENDLESS


def test_limits_in_a_session(graph):
    assert in_session(tf.train.StopAtStepHook(last_step=12), steps=[1, 5, 6]) == [12, 11, 6]


def test_hooks_of_users_see_every_step_if_they_look(graph):
    class Ends(tf.train.SessionRunHook):
        def end(self, session):
            pass

    class Logs(tf.train.LoggingTensorHook):
        def after_run(self, run_context, run_values):
            super().after_run(run_context, run_values)

    assert not known_hooks.sees_every_step(Ends())
    assert known_hooks.steps_until(Ends(), 3) == known_hooks.ENDLESS
    assert known_hooks.sees_every_step(Logs({"a": tf.constant(1)}, every_n_iter=10))
    assert known_hooks.sees_every_step(tf.train.FeedFnHook(dict))


def test_hooks_of_the_package_are_known(graph, tmp_path):
    trained = estimator.Estimator(lambda features: None, model_dir=str(tmp_path))
    stop = estimator.experimental.make_early_stopping_hook(
        trained, lambda: False, run_every_steps=7, run_every_secs=None
    )
    assert not known_hooks.sees_every_step(stop)
    assert known_hooks.steps_until(stop, 0) == 1
    stop._timer.update_last_triggered_step(0)
    assert known_hooks.steps_until(stop, 1) == 7


def test_fetched_tensors(graph, tmp_path):
    loss = tf.constant(1.0, name="loss")
    tf.summary.scalar("loss_curve", loss)
    logging = tf.train.LoggingTensorHook({"a": "loss:0", "op": loss.op}, every_n_iter=1)
    summaries = tf.train.SummarySaverHook(save_steps=1, output_dir=str(tmp_path), scaffold=tf.train.Scaffold())
    saver = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    for hook in (logging, summaries, saver):
        hook.begin()
    assert [tensor.name for tensor in known_hooks.fetched_tensors(logging)] == ["loss:0"]
    assert [tensor.dtype for tensor in known_hooks.fetched_tensors(summaries)] == [tf.string]
    assert [tensor.dtype.as_numpy_dtype for tensor in known_hooks.fetched_tensors(saver)] == [np.int64]
    assert known_hooks.fetched_tensors(tf.train.NanTensorHook(loss))[0] is loss
