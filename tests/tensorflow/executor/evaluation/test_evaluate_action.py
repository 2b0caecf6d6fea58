"""When evaluations are due."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from evaluation_runs import evaluated, log_hook, run
from hook_runs import OpenRun, train

import moxing.tensorflow as mox
from moxing.tensorflow.executor.actions.action import NEVER, Action
from moxing.tensorflow.executor.build.ledger import LedgerValues
from moxing.tensorflow.executor.evaluation.control import RunControl
from moxing.tensorflow.executor.evaluation.evaluate_action import EvaluateAction, FollowAction
from moxing.tensorflow.executor.loop.progress import Progress


def test_steps_in_between_run_many_at_a_time(monkeypatch):
    calls = []
    session_run = tf.Session.run
    monkeypatch.setattr(
        tf.Session, "run", lambda self, *args, **kwargs: calls.append(1) or session_run(self, *args, **kwargs)
    )
    run(log_hook(period=1000), steps=2000, log_every_n_steps=0)
    assert len(calls) < 100


def hook(period, samples=None, prefix="[V]"):
    return mox.LogEvaluationMetricHook({"x": tf.constant(0.0)}, 1, period, samples, prefix=prefix)


class Evaluated:
    """Evaluates to the number of the call; notes the samples that were asked for."""

    def __init__(self, indices, interrupted=()):
        self.indices, self.interrupted, self.samples = indices, interrupted, []

    def __call__(self, samples):
        self.samples.append(samples)
        number = len(self.samples)
        return None if number in self.interrupted else {index: {"x": float(number)} for index in self.indices}


class Paused(Action):
    def __init__(self):
        self.seconds = []

    def pause(self, seconds):
        self.seconds.append(seconds)


def after(steps):
    return Progress(steps, LedgerValues(samples=steps, steps=steps, last={}, means={}))


def in_open_run(test):
    """Calls a test with an open run and the control of it."""
    calls = []

    def look(run):
        calls.append(run)
        test(run, RunControl(run, []))

    train(lambda batch, w: [OpenRun(look)], steps=1)
    assert len(calls) == 1


def test_hooks_are_evaluated_at_their_periods(caplog):
    caplog.set_level("INFO")

    def test(run, control):
        hooks, evaluate, paused = {0: hook(2, prefix="[A]"), 1: hook(3, prefix="[B]")}, Evaluated([0, 1]), Paused()
        action = EvaluateAction([(hooks, evaluate)], control, [paused])
        assert [action.steps_until(done) for done in range(6)] == [2, 1, 1, 1, 2, 1]
        for done in range(1, 7):
            action.act(done, after(done))
        # After 2, 3 and 4 steps, and once for both hooks after 6.
        assert len(evaluate.samples) == len(paused.seconds) == 4
        assert {key: state["evaluated"] for key, state in action.state().items()} == {
            "0/LogEvaluationMetricHook": 6,
            "1/LogEvaluationMetricHook": 6,
        }

    in_open_run(test)
    assert evaluated(caplog, "[A]") == [(1, "x: 1.000"), (3, "x: 3.000"), (5, "x: 4.000")]
    assert evaluated(caplog, "[B]") == [(2, "x: 2.000"), (5, "x: 4.000")]


def test_hooks_with_other_numbers_of_samples_are_evaluated_apart():
    def test(run, control):
        evaluate = Evaluated([0, 1, 2])
        action = EvaluateAction([({0: hook(2, 5), 1: hook(2), 2: hook(2, 5)}, evaluate)], control, [])
        action.act(2, after(2))
        assert evaluate.samples == [5, None]

    in_open_run(test)


def test_asynchronous_workers_may_pass_over_a_period():
    def test(run, control):
        evaluate = Evaluated([0])
        action = EvaluateAction([({0: hook(10)}, evaluate)], control, [], asynchronous=True)
        assert action.steps_until(9) == NEVER
        for global_step in (9, 11, 12, 25, 29):
            action.act(1, after(global_step))
        assert action.state()["0/LogEvaluationMetricHook"]["evaluated"] == 25
        assert len(evaluate.samples) == 2

    in_open_run(test)


def test_an_interrupted_evaluation_is_repeated_by_the_next_run():
    def test(run, control):
        interrupted = EvaluateAction([({0: hook(2)}, Evaluated([0], interrupted=[1]))], control, [])
        interrupted.act(2, after(2))
        assert run.hooks.stop_requested
        evaluate = Evaluated([0])
        EvaluateAction([({0: hook(2)}, evaluate)], control, []).resume(interrupted.state(), 2)
        assert evaluate.samples == [None]

    in_open_run(test)


def test_a_worker_follows_the_chief():
    def test(run, control):
        decisions = [[], [{"stop": "the chief stops"}]]
        action = FollowAction(control, lambda: decisions.pop(0))
        action.act(1, after(1))
        assert not control.stopping
        action.act(2, after(2))
        assert control.stopping

    in_open_run(test)
