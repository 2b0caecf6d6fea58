"""Metrics of evaluations in event files, in whole runs."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from events import scalars
from hook_runs import best, saved_steps, train

import moxing.tensorflow as mox
from moxing.tensorflow.executor.evaluation.summaries import EvaluationSummaries, directories_of


def metrics(batch, w, samples=None, period=5, **others):
    return mox.LogEvaluationMetricHook({"mean": tf.reduce_mean(batch), "w": w, **others}, 1, period, samples)


def evaluation_data(mode, **kwargs):
    count = 1000 if mode == mox.ModeKeys.TRAIN else 7
    data = tf.data.Dataset.range(count).map(lambda number: tf.cast(number, tf.float32))
    return tf.data.make_one_shot_iterator(data).get_next()


@pytest.mark.parametrize(("towers", "update"), [(1, None), (2, "parameter_server"), (2, "replicated")])
def test_evaluations_are_curves_beside_the_training(towers, update, tmp_path):
    mox.set_flag("num_gpus", towers)
    mox.set_flag("variable_update", update)
    hooks = lambda batch, w: [metrics(batch, w)]  # noqa: E731
    settings = {"input_fn": evaluation_data, "inter_mode": "EVAL", "batch_size": 2}
    train(hooks, tmp_path, steps=12, **settings)
    expected = {4: -5.0, 9: -10.0}
    assert scalars(tmp_path / "eval") == {"mean": dict.fromkeys(expected, 3.0), "w": expected}
    assert "mean" not in scalars(tmp_path)
    # A run that goes on evaluates at the next steps only.
    train(hooks, tmp_path, steps=17, **settings)
    assert scalars(tmp_path / "eval")["w"] == {**expected, 14: -15.0}


def test_hooks_that_mean_something_else_have_curves_of_their_own(tmp_path):
    def hooks(batch, w):
        first = metrics(batch, w)
        same = mox.EarlyStoppingHook(dict(first.monitor_info), "w", 1, 10, patience=9)
        return [first, same, metrics(batch, w, samples=3), metrics(batch, w + 1.0, period=10, other=w)]

    train(hooks, tmp_path, input_fn=evaluation_data, inter_mode="EVAL", batch_size=2)
    assert scalars(tmp_path / "eval") == {"mean": {4: 3.0, 9: 3.0}, "w": {4: -5.0, 9: -10.0}}
    assert scalars(tmp_path / "eval_1") == {"mean": {4: 1.0, 9: 1.0}, "w": {4: -5.0, 9: -10.0}}
    assert scalars(tmp_path / "eval_2") == {"mean": {9: 3.0}, "w": {9: -9.0}, "other": {9: -10.0}}
    # The hook with the metrics of the first adds no second point.
    events = [event for path in (tmp_path / "eval").iterdir() for event in tf.train.summary_iterator(str(path))]
    assert sum(len(event.summary.value) for event in events) == 4


def test_every_set_of_data_has_curves_of_its_own(tmp_path):
    def others(mode, **kwargs):
        data = tf.data.Dataset.range(3).map(lambda number: tf.cast(number, tf.float32))
        return tf.data.make_one_shot_iterator(data).get_next()

    def hooks(batch, w):
        info = {"mean": tf.reduce_mean(batch)}
        return [
            mox.LogEvaluationMetricHook(info, 1, 5, input_fn=others),
            mox.LogEvaluationMetricHook(info, 1, 5),
            best(dict(info), "mean", period=10, input_fn=others),
        ]

    train(hooks, tmp_path, input_fn=evaluation_data, inter_mode="EVAL", batch_size=2)
    assert scalars(tmp_path / "eval") == {"mean": {4: 1.0, 9: 1.0}}
    assert scalars(tmp_path / "eval_1") == {"mean": {4: 3.0, 9: 3.0}}
    assert saved_steps(tmp_path / "best") == [10]


def test_no_summaries_no_curves(tmp_path):
    hooks = lambda batch, w: [metrics(batch, w)]  # noqa: E731
    train(hooks, tmp_path, input_fn=evaluation_data, inter_mode="EVAL", save_summary_steps=0)
    assert not (tmp_path / "eval").exists()
    assert not list(tmp_path.glob("events*"))


@pytest.mark.parametrize(
    ("meanings", "expected"),
    [
        ([], []),
        ([{"a": 1}, {"a": 1}, {"b": 2}], ["eval"] * 3),
        ([{"a": 1}, {"a": 2}, {"a": 3}], ["eval", "eval_1", "eval_2"]),
        # A directory takes the names of all its hooks.
        ([{"a": 1}, {"b": 2}, {"a": 1, "b": 3}, {"b": 3}], ["eval", "eval", "eval_1", "eval_1"]),
    ],
)
def test_hooks_share_a_directory_where_names_mean_the_same(meanings, expected):
    assert directories_of(meanings, "eval") == expected


def test_a_point_of_a_curve_is_written_once(tmp_path):
    with tf.Graph().as_default():
        loss, accuracy = tf.constant(1.0), tf.constant(2.0)
        infos = ({"loss": loss}, {"loss": loss, "accuracy": accuracy})
        summaries = EvaluationSummaries(
            str(tmp_path), "eval", [mox.LogEvaluationMetricHook(info, 1, 1) for info in infos]
        )
        for step in (3, 5):
            summaries.write(0, step, {"loss": 0.5 * step})
            summaries.write(1, step, {"loss": 0.5 * step, "accuracy": 0.75})
        summaries.close()
    (path,) = (tmp_path / "eval").iterdir()
    tags = [value.tag for event in tf.train.summary_iterator(str(path)) for value in event.summary.value]
    assert tags == ["loss", "accuracy"] * 2
    assert scalars(tmp_path / "eval") == {"loss": {3: 1.5, 5: 2.5}, "accuracy": {3: 0.75, 5: 0.75}}
