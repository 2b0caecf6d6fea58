"""A job that is handed to Estimators gets every call that is about other processes."""

from __future__ import annotations

import json
import time

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow import estimator as api
from moxing.tf1.estimator import job_seams


class RecordedJob:
    """Writes down its calls."""

    def __init__(self):
        self.calls = []

    def join(self, config):
        self.calls.append(f"join {config.task_type}")
        raise SystemExit(0)

    def serve(self, config):
        self.calls.append(f"serve {config.task_type}")
        raise SystemExit(0)

    def count_training(self, config):
        self.calls.append("count")

    def evaluator(self):
        self.calls.append("evaluator")
        return self

    def before_eval(self):
        self.calls.append("before_eval")
        return True

    def after_eval(self, eval_result):
        self.calls.append(f"after_eval {eval_result.status}")
        return False

    def sleep(self, seconds):
        self.calls.append(f"sleep {seconds}")


@pytest.fixture
def job(monkeypatch):
    """A recorded job instead of the real one, for one test."""
    from tensorflow_estimator.python.estimator import estimator, training

    executor = training._TrainingExecutor
    for name in ("_start_std_server", "run_ps"):
        monkeypatch.setattr(executor, name, getattr(executor, name))
    # Without the real job, which is connected when `tf.estimator` is imported.
    for owner, name in ((executor, "run_evaluator"), (estimator.Estimator, "train")):
        monkeypatch.setattr(owner, name, getattr(owner, name).__wrapped__)
    monkeypatch.setattr(training, "time", time)
    recorded = RecordedJob()
    job_seams.connect(recorded)
    return recorded


def estimator_of(monkeypatch, tmp_path, kind):
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}}))
    return api.Estimator(lambda features, mode: None, config=api.RunConfig(model_dir=str(tmp_path)))


def train_and_evaluate(estimator):
    def input_fn():
        return tf.data.Dataset.range(3)

    evaluation = api.EvalSpec(input_fn, start_delay_secs=7)
    api.train_and_evaluate(estimator, api.TrainSpec(input_fn, max_steps=1), evaluation)


@pytest.mark.parametrize(("kind", "call"), [("chief", "join chief"), ("worker", "join worker"), ("ps", "serve ps")])
def test_members_of_the_cluster(monkeypatch, tmp_path, job, kind, call):
    with pytest.raises(SystemExit):
        train_and_evaluate(estimator_of(monkeypatch, tmp_path, kind))
    assert job.calls == [call]


def test_an_evaluator(monkeypatch, tmp_path, job):
    train_and_evaluate(estimator_of(monkeypatch, tmp_path, "evaluator"))
    assert job.calls == ["evaluator", "sleep 7", "before_eval", "after_eval missing checkpoint"]


def test_a_ps_that_calls_train(monkeypatch, tmp_path, job):
    with pytest.raises(SystemExit):
        estimator_of(monkeypatch, tmp_path, "ps").train(lambda: None)
    assert job.calls == ["serve ps"]


class RemovedWhileEvaluated:
    """An evaluator whose first checkpoints are removed by the training before it has read them."""

    def __init__(self, directory, removed):
        self._directory, self._left = directory, removed
        self._estimator = self

    def latest_checkpoint(self):
        return str(self._directory / f"model.ckpt-{self._left}")

    def evaluate(self):
        if self._left:
            self._left -= 1
            raise ValueError("The passed save_path is not a valid checkpoint")
        return "evaluated"


def test_a_checkpoint_that_the_training_has_removed(tmp_path, monkeypatch):
    evaluate = job_seams._evaluating_newest(RemovedWhileEvaluated.evaluate)
    monkeypatch.setattr(tf.train, "checkpoint_exists", lambda prefix: prefix.endswith("-0"))
    assert evaluate(RemovedWhileEvaluated(tmp_path, 2)) == "evaluated"


def test_other_errors_of_an_evaluation_are_raised(tmp_path, monkeypatch):
    def evaluate(self):
        raise ValueError("the metrics of the user")

    monkeypatch.setattr(tf.train, "checkpoint_exists", lambda prefix: True)
    with pytest.raises(ValueError, match="the metrics of the user"):
        job_seams._evaluating_newest(evaluate)(RemovedWhileEvaluated(tmp_path, 1))
