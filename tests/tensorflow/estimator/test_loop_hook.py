"""Many steps of an Estimator per session.run: the same numbers, log lines and checkpoints as with single steps."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from helpers.estimator_models import assert_equal, input_fn, make, weights
from moxing.tensorflow import estimator
from moxing.tf1.estimator import known_hooks


class Looks(tf.train.SessionRunHook):
    """Wants every step, so that the steps are single ones."""

    def __init__(self, *_):
        self.losses = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.losses.get_losses()[0])

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


class Calls(tf.train.SessionRunHook):
    """Counts the calls of session.run by wrapping it; looks at no step."""

    def __init__(self, *_):
        self.calls = 0

    def after_create_session(self, session, coord):
        run = session.run

        def counted(*args, **kwargs):
            self.calls += 1
            return run(*args, **kwargs)

        session.run = counted


def test_many_steps_equal_single_steps(tmp_path):
    looks = Looks()
    make(tmp_path / "single", lambda *_: looks, dropout=True).train(input_fn, max_steps=130)
    assert len(looks.losses) == 130
    make(tmp_path / "many", dropout=True).train(input_fn, max_steps=130)
    assert_equal(weights(tmp_path / "single"), weights(tmp_path / "many"))
    names = {path.name for path in (tmp_path / "many").glob("*.index")}
    assert names == {path.name for path in (tmp_path / "single").glob("*.index")}
    assert "model.ckpt-125.index" in names and "model.ckpt-130.index" in names


def test_there_are_few_calls(tmp_path):
    calls = Calls()
    hooks = (lambda *_: calls,)
    make(tmp_path, *hooks, save_checkpoints_steps=1000, log_step_count_steps=500).train(input_fn, max_steps=1000)
    # One session.run for each step would be 1000.
    assert 0 < calls.calls < 150


def lines_of(caplog):
    found = [re.sub(r" \([\d.]+ sec\)|sec: .*", "", record.getMessage()) for record in caplog.records]
    return [line for line in found if line.startswith(("loss =", "p =", "global_step", "Loss for"))]


@pytest.mark.slow
def test_log_lines_and_summaries_are_the_same(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    tf.logging.set_verbosity(tf.logging.INFO)

    def logs(right, logits):
        first = tf.nn.softmax(logits)[:1]
        return tf.train.LoggingTensorHook({"right": right, "p": first}, every_n_iter=40)

    found = {}
    # In single steps TensorFlow's hook may be a step early: it reads the global step beside the step. So it writes all.
    for name, hooks, every in (("single", (logs, Looks), 1), ("many", (logs,), 20)):
        caplog.clear()
        make(tmp_path / name, *hooks, log_step_count_steps=30, save_summary_steps=every).train(input_fn, max_steps=90)
        events = next((tmp_path / name).glob("events*"))
        curve = {
            (event.step, value.tag): value.simple_value
            for event in tf.train.summary_iterator(str(events))
            for value in event.summary.value
            if value.tag in ("right", "loss")
        }
        found[name] = lines_of(caplog), curve
    (single_lines, single_curve), (lines, curve) = found["single"], found["many"]
    assert single_lines == lines
    assert [line for line in lines if line.startswith("p =")][1].startswith("p = [[0.")
    assert [step for step, tag in curve if tag == "right"] == [1, 21, 41, 61, 81]
    assert curve == {key: single_curve[key] for key in curve}


def test_a_loss_that_is_not_a_number_is_named_at_its_step(tmp_path):
    def model_fn(features, labels, mode):
        weight = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        step = tf.train.get_global_step()
        loss = tf.where(step < 60, weight * 0.0 + 1.0, tf.constant(np.nan))
        with tf.control_dependencies([loss]):
            train = step.assign_add(1)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    one = estimator.Estimator(model_fn, str(tmp_path), estimator.RunConfig(save_checkpoints_steps=1000))
    with pytest.raises(tf.train.NanLossDuringTrainingError):
        one.train(input_fn, max_steps=1000)


def test_the_end_of_the_data_ends_the_training(tmp_path):
    make(tmp_path).train(lambda: input_fn().take(33))
    assert weights(tmp_path)["global_step"] == 33


@pytest.mark.slow
@pytest.mark.parametrize("every", [None, 10])
def test_early_stopping_stops_between_calls(tmp_path, every):
    one = make(tmp_path)
    asked = []
    hook = estimator.experimental.make_early_stopping_hook(
        one, lambda: asked.append(1) or len(asked) > 3, run_every_secs=None if every else 0, run_every_steps=every
    )
    one.train(input_fn, max_steps=100_000, hooks=[hook])
    assert len(asked) == 4
    if every:
        # The first time after the first step, then every ten.
        assert 30 <= weights(tmp_path)["global_step"] <= 33


def test_canned_estimators_and_queues(tmp_path):
    x = np.random.RandomState(0).rand(64, 3).astype(np.float32)
    y = x @ np.array([[1.0], [2.0], [3.0]], np.float32)
    data = {"x": x}
    one = estimator.LinearRegressor([tf.feature_column.numeric_column("x", [3])], str(tmp_path))
    one.train(estimator.inputs.numpy_input_fn(data, y, batch_size=8, num_epochs=60, shuffle=True))
    assert weights(tmp_path)["global_step"] == 480
    assert one.evaluate(estimator.inputs.numpy_input_fn(data, y, num_epochs=1, shuffle=False))["average_loss"] < 0.5


def test_control_flow_v1_means_single_steps(tmp_path):
    calls = Calls()
    tf.disable_control_flow_v2()
    try:
        make(tmp_path, lambda *_: calls, save_checkpoints_steps=1000).train(input_fn, max_steps=30)
    finally:
        tf.enable_control_flow_v2()
    assert calls.calls >= 30
    assert tf.train.load_variable(str(tmp_path), "global_step") == 30


class Fetches(tf.train.SessionRunHook):
    """Fetches a variable by name in every step."""

    def __init__(self, *_):
        self.values = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("dense_1/bias:0")

    def after_run(self, run_context, run_values):
        self.values.append(run_values.results)


def test_hooks_get_the_value_of_a_variable_by_name(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    tf.logging.set_verbosity(tf.logging.INFO)
    logs = tf.train.LoggingTensorHook(["dense_1/bias:0"], every_n_iter=10)
    make(tmp_path / "many", lambda *_: logs).train(input_fn, max_steps=11)
    lines = [line for line in caplog.messages if line.startswith("dense_1/bias:0 = ")]
    assert len(lines) == 2 and re.fullmatch(r"dense_1/bias:0 = \[( ?-?\d\S*){2}\] .*", lines[1])
    fetches = Fetches()
    make(tmp_path / "single", lambda *_: fetches).train(input_fn, max_steps=11)
    last = weights(tmp_path / "single")["dense_1/bias"]
    assert last.dtype == fetches.values[-1].dtype and np.abs(fetches.values[-1] - last).max() < 0.1
    assert np.any(fetches.values[-1] != fetches.values[0])


class Steps(tf.train.SessionRunHook):
    """Fetches what TensorFlow's own hooks read as the global step."""

    def __init__(self, *_):
        self.seen = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(known_hooks.shared_global_steps())

    def after_run(self, run_context, run_values):
        self.seen += map(int, run_values.results)


def test_hooks_see_the_global_step_before_each_single_step(tmp_path):
    steps = Steps()
    make(tmp_path, lambda *_: steps).train(input_fn, max_steps=300)
    assert steps.seen == list(range(300))
