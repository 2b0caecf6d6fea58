"""`mox.run` in EVAL and PREDICT: means, outputs, numbers of steps; which actions a run has, and in which order."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds
from hook_runs import OpenRun, train
from line_problem import sgd
from small_runs import messages, numbers, run, scalar, step_lines

import moxing.tensorflow as mox
from moxing.tensorflow.executor.actions.action import Action
from moxing.tensorflow.executor.actions.log import LogAction, RateAction
from moxing.tensorflow.executor.actions.save import SaveAction
from moxing.tensorflow.executor.actions.summaries import SummaryAction
from moxing.tensorflow.executor.hooks.throughput import ThroughputAction
from moxing.tensorflow.executor.run import run_actions


@pytest.fixture(autouse=True)
def info_lines(caplog):
    caplog.set_level("INFO", logger="tensorflow")


# --- EVAL -------------------------------------------------------------------------------------------------------------


def mean_model(inputs, mode, **kwargs):
    w = scalar()
    numbers_ = tf.cast(inputs[0], tf.float32)
    return mox.ModelSpec(loss=w, log_info={"mean": tf.reduce_mean(numbers_), "first": numbers_[0]})


def test_eval_means_are_weighted_by_sample(tmp_path, caplog):
    run(log_dir=tmp_path, model_fn=mean_model)
    caplog.clear()
    result = run("EVAL", log_dir=tmp_path, model_fn=mean_model, input_fn=numbers(7), batch_size=3,
                 max_number_of_steps=100)  # fmt: skip
    # Batches 0 1 2, 3 4 5, 6.
    assert result.log_info == {"mean": 3.0, "first": pytest.approx((0 * 3 + 3 * 3 + 6) / 7)}
    assert result.samples == 7
    assert result.global_step == 3
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-3")
    (line,) = [line for line in messages(caplog) if "[EVAL]" in line]
    assert line == "[EVAL] step: 2(global step: 3)\tsamples: 7\tmean: 3.000\tfirst: 2.143"
    assert messages(caplog)[-1] == line


def test_eval_lines_are_the_batch_s_own(tmp_path, caplog):
    run(log_dir=tmp_path, model_fn=mean_model)
    caplog.clear()
    run("EVAL", log_dir=tmp_path, model_fn=mean_model, input_fn=numbers(8), log_every_n_steps=1,
        max_number_of_steps=100)  # fmt: skip
    lines = step_lines(caplog)
    assert [(step, text) for step, _, text in lines] == [
        (step, f"\tmean: {2 * step + 0.5:.3f}\tfirst: {2 * step:.3f}") for step in range(4)
    ]
    # The checkpoint's step stays what it is, whatever the evaluation's own step.
    assert {total for _, total, _ in lines} == {3}


def test_eval_takes_so_many_steps_and_writes_nothing(tmp_path):
    run(log_dir=tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    result = run("EVAL", log_dir=tmp_path, max_number_of_steps=2)
    assert result.samples == 4
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_eval_from_checkpoint_path(tmp_path):
    run(log_dir=tmp_path / "train")
    for path in (tmp_path / "train", tmp_path / "train" / "model.ckpt-3", tmp_path / "train" / "model.ckpt-3.index"):
        result = run("EVAL", checkpoint_path=path)
        assert result.log_info == {"w": -3.0}
        assert result.checkpoint_path == str(tmp_path / "train" / "model.ckpt-3")


def test_eval_ignores_optimizer_fn(tmp_path):
    run(log_dir=tmp_path, optimizer_fn=mox.get_optimizer_fn("adam", 0.1))
    assert run("EVAL", log_dir=tmp_path, optimizer_fn=None).global_step == 3
    assert run("EVAL", log_dir=tmp_path, optimizer_fn=[sgd()] * 3).global_step == 3


# --- PREDICT ----------------------------------------------------------------------------------------------------------


def predict_model(inputs, mode, **kwargs):
    w = scalar()
    return mox.ModelSpec(loss=w, output_info={"n": inputs[0], "w": w})


@pytest.mark.parametrize(
    ("every", "expected"), [(0, [1] * 5), (None, [1] * 5), (1, [1] * 5), (2, [2, 2, 1]), (5, [5]), (100, [5])]
)
def test_predict_groups_outputs(every, expected, tmp_path, caplog):
    run(log_dir=tmp_path, model_fn=predict_model)
    calls = []
    result = run("PREDICT", log_dir=tmp_path, model_fn=predict_model, input_fn=numbers(9), output_fn=calls.append,
                 output_every_n_steps=every, max_number_of_steps=100)  # fmt: skip
    assert [len(outputs) for outputs in calls] == expected
    assert all(isinstance(outputs, list) for outputs in calls)
    flat = [outputs for call in calls for outputs in call]
    assert [outputs["n"].tolist() for outputs in flat] == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
    assert all(set(outputs) == {"n", "w"} and outputs["w"] == -3 for outputs in flat)
    assert isinstance(flat[0]["n"], np.ndarray)
    assert result.samples == 9
    assert "\t[9 examples]" in messages(caplog)


def test_predict_takes_so_many_steps(tmp_path):
    run(log_dir=tmp_path, model_fn=predict_model)
    calls = []
    run("PREDICT", log_dir=tmp_path, model_fn=predict_model, input_fn=numbers(9), output_fn=calls.append,
        output_every_n_steps=2, max_number_of_steps=3)  # fmt: skip
    assert [len(outputs) for outputs in calls] == [2, 1]


def test_predict_needs_no_loss(tmp_path):
    run(log_dir=tmp_path)
    calls = []

    def model_fn(inputs, mode):
        return mox.ModelSpec(output_info={"w": scalar()})

    run("PREDICT", log_dir=tmp_path, model_fn=model_fn, output_fn=calls.extend, max_number_of_steps=1)
    assert calls == [{"w": -3.0}]


def test_output_fn_in_train_and_eval(tmp_path):
    for mode in ("TRAIN", "EVAL"):
        calls = []
        run(mode, log_dir=tmp_path, output_fn=calls.append, output_every_n_steps=2)
        assert [len(outputs) for outputs in calls] == [2, 1]


def test_an_error_in_output_fn_reaches_the_caller(tmp_path):
    run(log_dir=tmp_path)

    def output_fn(outputs):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run("PREDICT", log_dir=tmp_path, output_fn=output_fn)


def test_data_set_that_is_empty():
    def empty(mode):
        return tf.data.Dataset.range(0).make_one_shot_iterator().get_next()

    assert holds(error_of(ValueError, input_fn=empty), "input_fn", "no data")


# --- actions ----------------------------------------------------------------------------------------------------------


def kinds(*arguments, hooks=(), **settings) -> list[type[Action]]:
    """The types of the actions of a run that has `hooks`, too."""
    found: list[list[Action]] = []

    def look(run):
        if not found:
            found.append([])  # the hook is asked again, for the actions made here
            found[0] = run_actions(run, None)

    train(lambda batch, w: [OpenRun(look), *hooks], *arguments, **settings)
    return [type(action) for action in found[0]]


def test_a_training_with_log_dir(tmp_path):
    """Checkpoints come last: they hold what the other actions have decided."""
    assert kinds(tmp_path, steps=1) == [LogAction, RateAction, SummaryAction, SaveAction]
    assert kinds(tmp_path, steps=2, save_summary_steps=0) == [LogAction, RateAction, SaveAction]


def test_a_training_without_log_dir():
    assert kinds(steps=1) == [LogAction, RateAction]


def test_actions_of_hooks_follow_the_log(tmp_path):
    hooks = [mox.ThroughputHook(log=True)]
    assert kinds(steps=1, hooks=hooks) == [LogAction, ThroughputAction, RateAction]


def test_other_modes_have_the_log_and_the_hooks_that_work_in_every_mode(tmp_path):
    train(lambda batch, w: [], tmp_path, steps=1)
    assert kinds(tmp_path, steps=1, mode="EVAL", hooks=[mox.ThroughputHook(log=True)]) == [LogAction]


def test_a_training_writes_a_checkpoint_before_its_first_step(tmp_path):
    found = []

    def look(run):
        if not found:
            found.append(run)
            run_actions(run, None)
            assert (tmp_path / "model.ckpt-0.index").exists()

    train(lambda batch, w: [OpenRun(look)], tmp_path, steps=1)
    assert found
