"""The helper hooks, each in real runs whose files are read back."""

from __future__ import annotations

import importlib
import json
import os
import signal

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from events import scalars
from line_problem import run, sgd

import moxing.tensorflow as mox
from moxing.tensorflow.executor import NotFiniteError
from moxing.tensorflow.executor.hooks.throughput import ThroughputAction
from moxing.tensorflow.executor.ledger import LedgerValues
from moxing.tensorflow.executor.loop import Progress

run_module = importlib.import_module("moxing.tensorflow.executor.run")


@pytest.fixture
def steppers(monkeypatch):
    """The objects that did the steps of the test's runs."""
    made = []
    original = run_module.make_stepper
    monkeypatch.setattr(run_module, "make_stepper", lambda *arguments: made.append(original(*arguments)) or made[-1])
    return made


class Looks(tf.train.SessionRunHook):
    """Wants every step, so that each is a call of its own."""

    def after_run(self, context, values):
        pass


def numbers(mode, **kwargs):
    data = tf.data.Dataset.range(1000).map(lambda number: tf.cast(number, tf.float32))
    return tf.data.make_one_shot_iterator(data).get_next()


def model(hooks, loss=None, log_info=None):
    """A `model_fn`: `hooks` and `loss` are functions of the batch and of w."""

    def model_fn(inputs, mode, **kwargs):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        value = w if loss is None else loss(inputs[0], w)
        return mox.ModelSpec(loss=value, log_info={"w": w}, hooks=hooks(inputs[0], w))

    return model_fn


def train(hooks, log_dir=None, steps=10, loss=None, **arguments):
    settings = {"input_fn": numbers, "max_number_of_steps": steps, "batch_size": 1}
    settings["log_dir"] = None if log_dir is None else str(log_dir)
    return run(model_fn=model(hooks, loss), **{**settings, **arguments})


def saved(directory, step):
    return float(tf.train.load_checkpoint(str(directory / f"model.ckpt-{step}")).get_tensor("w"))


def saved_steps(directory):
    return sorted(int(path.stem.split("-")[1]) for path in directory.glob("model.ckpt-*.index"))


# --- several hooks, and the speed of the loop -------------------------------------------------------------------------


@pytest.mark.parametrize("towers", [1, 2])
def test_no_hook_asks_for_single_steps(towers, tmp_path, steppers):
    mox.set_flag("num_gpus", towers)
    ends = []

    def hooks(batch, w):
        return [
            mox.ThroughputHook(10),
            mox.GradientNormHook(10),
            mox.NanGuardHook({"w": w}, action="restore"),
            mox.ProfilerHook(start_step=5, steps=3),
            mox.RunEndHook(ends.append),
        ]

    train(hooks, tmp_path, steps=25, save_summary_steps=10)
    assert [stepper.many for stepper in steppers] == [True]
    assert [end.global_step for end in ends] == [25]
    assert len(list(tmp_path.glob("events*"))) == 1  # TensorBoard follows one file of a directory
    found = scalars(tmp_path)
    assert set(found) == {
        *("w", "learning_rate", "nan_guard_factor", "gradient_norm", "steps_per_sec", "samples_per_sec"),
    }
    assert sorted(found["gradient_norm"]) == [0, 10, 20]


def test_in_other_modes_they_leave_the_run_alone(tmp_path):
    train(lambda batch, w: [], tmp_path)
    ends = []

    def hooks(batch, w):
        restores = mox.NanGuardHook({"w": w / 0.0}, action="restore")
        return [mox.ThroughputHook(1), mox.GradientNormHook(1), restores, mox.RunEndHook(ends.append)]

    result = train(hooks, tmp_path, mode="EVAL", optimizer_fn=None)
    assert ends[0].reason == "end"
    assert ends[0].log_info == result.log_info == {"w": -10.0}


WRONG = [
    (lambda: mox.ThroughputHook(0), "ThroughputHook(every_n_steps=0): expected an integer from 1"),
    (lambda: mox.GradientNormHook(2.5), "GradientNormHook(every_n_steps=2.5): expected an integer from 1"),
    (lambda: mox.GradientNormHook(log=1), "GradientNormHook(log=1): expected True or False"),
    (lambda: mox.RunEndHook(lambda: 1), "expected a function of one argument"),
    (lambda: mox.NanGuardHook(action="retry"), "NanGuardHook(action='retry'): expected 'stop' or 'restore'"),
    (lambda: mox.NanGuardHook(factor=0), "NanGuardHook(factor=0): expected a number above 0"),
    (lambda: mox.NanGuardHook(max_restores=0), "NanGuardHook(max_restores=0): expected an integer from 1"),
    (lambda: mox.NanGuardHook({"n": tf.constant(1)}), "tensors['n']="),
    (lambda: mox.NanGuardHook(tf.constant(1.0)), "expected a dict of tensors by name, or a list"),
    (lambda: mox.NanGuardHook([object()]), "expected a tensor"),
    (lambda: mox.ProfilerHook(-1), "ProfilerHook(start_step=-1): expected an integer from 0"),
    (lambda: mox.ProfilerHook(steps=0), "ProfilerHook(steps=0): expected an integer from 1"),
    (lambda: mox.ProfilerHook(directory=""), "ProfilerHook(directory=''): expected a path"),
    (lambda: mox.RunEndHook("print"), "RunEndHook(callback='print'): expected a function"),
    (lambda: best({"x": tf.constant(1.0)}, "y"), "monitor='y'"),
    (lambda: best({"x": tf.constant(1.0)}, "x", keep=0), "keep=0"),
    (lambda: best({"x": tf.constant(1.0)}, "x", mode="best"), "mode='best'"),
    (lambda: best({"x": tf.constant(1.0)}, "x", min_delta=-1), "min_delta=-1"),
    (lambda: best({"x": tf.constant(1.0)}, "x", directory="a/b"), "directory='a/b'"),
]


def best(info, monitor, period=2, **arguments):
    return mox.BestCheckpointHook(info, monitor, 1, period, 1, **arguments)


@pytest.mark.parametrize(("make", "words"), WRONG, ids=[words for _, words in WRONG])
def test_wrong_arguments(make, words):
    with tf.Graph().as_default(), pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert words in str(caught.value)


# --- evaluation metrics as curves -------------------------------------------------------------------------------------


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


# --- the best checkpoint ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("keep", "kept"), [(1, [4]), (2, [2, 4])])
@pytest.mark.parametrize("towers", [1, 2])
def test_the_best_checkpoint_is_kept(keep, kept, towers, tmp_path):
    """|w + 5| is 3, 1, 1, 3 after 2, 4, 6, 8 steps."""
    mox.set_flag("num_gpus", towers)
    hooks = lambda batch, w: [best({"x": tf.abs(w + 5.0)}, "x", keep=keep)]  # noqa: E731
    result = train(hooks, tmp_path, steps=8, inter_mode="EVAL")
    assert result.log_info["w"] == -7.0  # the training ends with its own variables
    assert saved_steps(tmp_path / "best") == kept
    assert saved(tmp_path / "best", 4) == -4.0
    # What it holds is a whole checkpoint: it can be evaluated.
    evaluated = train(lambda batch, w: [], mode="EVAL", steps=1, checkpoint_path=str(tmp_path / "best"))
    assert evaluated.log_info["w"] == -4.0
    assert evaluated.global_step == 4


def test_the_best_value_survives_a_restart(tmp_path):
    """Higher is better: -|w + 5| is -3, -1 after 2, 4 steps; then the run begins anew with a worse one."""
    hooks = lambda batch, w: [best({"accuracy": -tf.abs(w + 5.0)}, "accuracy", keep=2)]  # noqa: E731
    train(hooks, tmp_path, steps=4, inter_mode="EVAL")
    assert saved_steps(tmp_path / "best") == [2, 4]
    train(hooks, tmp_path, steps=8, inter_mode="EVAL")
    assert saved_steps(tmp_path / "best") == [2, 4]
    # A gain of the later run removes the oldest of the earlier one.
    rising = lambda batch, w: [best({"accuracy": tf.abs(w)}, "accuracy", keep=2)]  # noqa: E731
    train(rising, tmp_path, steps=10, inter_mode="EVAL")
    assert saved_steps(tmp_path / "best") == [4, 10]


def test_min_delta_and_the_place_of_the_best(tmp_path):
    def hooks(batch, w):
        near = best({"x": tf.abs(w)}, "x", min_delta=2.0, mode="max", directory="far")
        return [near, best({"x": tf.abs(w + 1.0)}, "x")]

    train(hooks, tmp_path, steps=8, inter_mode="EVAL")
    assert saved_steps(tmp_path / "far") == [6]  # 2, not 4 (exactly 2 more), 6
    assert saved_steps(tmp_path / "best") == [2]


def test_two_best_in_one_place(tmp_path):
    def hooks(batch, w):
        early = mox.EarlyStoppingHook({"y": w}, "y", 1, 2, 1, patience=9, restore_best=True)
        return [early, best({"x": w}, "x")]

    with pytest.raises(ValueError, match=r"BestCheckpointHook\(directory='best'\): another hook"):
        train(hooks, tmp_path, inter_mode="EVAL")
    with pytest.raises(ValueError, match="BestCheckpointHook keeps the best variables in log_dir"):
        train(lambda batch, w: [best({"x": w}, "x")], inter_mode="EVAL")


# --- what is not finite -----------------------------------------------------------------------------------------------


def bad_at(*numbers):
    """Infinite with the samples of those numbers."""
    return lambda batch: tf.where(tf.reduce_any(tf.equal(batch[0], numbers)), np.inf, 0.0)


@pytest.mark.parametrize("single", [False, True], ids=["loop", "single steps"])
def test_a_named_tensor_ends_the_run(single, tmp_path):
    def hooks(batch, w):
        guard = mox.NanGuardHook({"fine": w, "logits": tf.stack([w, bad_at(6)(batch)])})
        return [guard, Looks()] if single else [guard]

    with pytest.raises(NotFiniteError, match=r"Step 6: logits is NaN or infinite\. The last good .*model\.ckpt-4"):
        train(hooks, tmp_path, steps=100, save_model_steps=4, log_every_n_steps=0)
    assert saved_steps(tmp_path)[-1] == 4


def test_a_list_and_the_tower_of_a_tensor():
    def hooks(batch, w):
        return [mox.NanGuardHook([tf.identity(bad_at(7)(batch), name="values")])]

    mox.set_flag("num_gpus", 2)
    # Samples 6 and 7 are those of the fourth step: one for each tower.
    with pytest.raises(NotFiniteError, match=r"Step 3: .*values.*:0 of tower 1 is NaN or infinite"):
        train(hooks, steps=100)


def nan_loss(*numbers):
    return lambda batch, w: w + bad_at(*numbers)(batch)


def test_back_to_the_last_checkpoint(tmp_path, caplog):
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", factor=0.5)]  # noqa: E731
    result = train(
        hooks, tmp_path, loss=nan_loss(7, 12), optimizer_fn=sgd(1.0), save_model_steps=4, save_summary_steps=1
    )
    # Sample 7 is the step 7: back to 4, where w is -4. Samples 8 to 11 are the steps 4 to 7, at rate 0.5: -6 at 8, the
    # next checkpoint. Sample 12 is the step 8: back to 8. Then two steps at rate 0.25.
    assert result.global_step == 10
    assert saved(tmp_path, 8) == -6.0
    assert saved(tmp_path, 10) == -6.5
    # TensorBoard shows the last value of a step.
    assert scalars(tmp_path)["learning_rate"] == {
        **dict.fromkeys(range(4), 1.0), **dict.fromkeys(range(4, 8), 0.5), 8: 0.25, 9: 0.25,
    }  # fmt: skip
    said = [record.getMessage() for record in caplog.records if "goes back" in record.getMessage()]
    assert "Step 7" in said[0] and "lower the learning rate" not in said[0]
    assert "model.ckpt-4 (1 of 3)" in said[0]
    assert "model.ckpt-8 (2 of 3)" in said[1]
    assert "NanGuardHook went back 2 times: the learning rate is now 0.25 times that of the optimizer." in caplog.text
    # The run that goes on knows both.
    state = json.loads((tmp_path / "model.ckpt-10.moxing.json").read_text())["hooks"]
    assert state == {"NanGuardHook": {"restores": 2}}
    caplog.clear()
    train(hooks, tmp_path, steps=12, save_summary_steps=1)
    assert saved(tmp_path, 12) == -7.0
    assert "the learning rate is now 0.25 times" in caplog.text


@pytest.mark.parametrize("update", ["parameter_server", "replicated"])
def test_two_towers_go_back(update, tmp_path):
    mox.set_flag("num_gpus", 2)
    mox.set_flag("variable_update", update)
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", factor=0.5)]  # noqa: E731
    train(hooks, tmp_path, steps=6, loss=nan_loss(11), save_model_steps=4)
    # In the step 5 of samples 10 and 11 the loss of the second tower is infinite: two steps at rate 0.5 instead.
    assert saved(tmp_path, 6) == -5.0


def test_variables_that_are_not_finite_go_back(tmp_path):
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", factor=1)]  # noqa: E731
    clean = lambda batch, w: []  # noqa: E731
    with pytest.raises(NotFiniteError, match="variables became NaN"):
        train(clean, tmp_path / "a", loss=lambda batch, w: w + tf.sqrt(w * 0.0), save_model_steps=1)

    def at_five(batch, w):
        # The value of the root is 0, its gradient is not a number.
        return tf.cond(tf.equal(batch[0], 5.0), lambda: w + tf.sqrt(w * 0.0), lambda: w)

    train(hooks, tmp_path / "b", loss=at_five, save_model_steps=1)
    assert saved(tmp_path / "b", 10) == -10.0


def test_not_for_ever(tmp_path, caplog):
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", max_restores=2)]  # noqa: E731
    with pytest.raises(NotFiniteError, match="the loss is NaN or infinite"):
        train(hooks, tmp_path, loss=lambda batch, w: w + np.inf)
    assert caplog.text.count("goes back to") == 2
    # No checkpoint came after them, and the next run knows of them all the same.
    with pytest.raises(NotFiniteError, match="the loss is NaN or infinite"):
        train(hooks, tmp_path, loss=lambda batch, w: w + np.inf)
    assert caplog.text.count("goes back to") == 2
    with pytest.raises(ValueError, match=r"action='restore'\) needs mox.run\(log_dir"):
        train(hooks)
    twice = lambda batch, w: [mox.NanGuardHook(), mox.NanGuardHook()]  # noqa: E731
    with pytest.raises(ValueError, match="expected one mox.NanGuardHook|several"):
        train(twice)


# --- gradients --------------------------------------------------------------------------------------------------------


def norms(log_dir, **arguments):
    hooks = lambda batch, w: [mox.GradientNormHook(3)]  # noqa: E731
    train(hooks, log_dir, loss=lambda batch, w: w * batch[0], save_summary_steps=0, **arguments)
    return scalars(log_dir)["gradient_norm"]


@pytest.mark.parametrize("scale", [1.0, 8.0, "dynamic"])
def test_the_norm_of_every_third_step(scale, tmp_path):
    """The gradient is the sample."""
    mox.set_flag("loss_scale", scale)
    assert norms(tmp_path, batch_size=1) == {0: 0.0, 3: 3.0, 6: 6.0, 9: 9.0}


@pytest.mark.parametrize("update", ["parameter_server", "replicated"])
def test_the_norm_of_the_mean_of_towers(update, tmp_path):
    mox.set_flag("num_gpus", 2)
    mox.set_flag("variable_update", update)
    # Samples 0 and 1, then 6 and 7, 12 and 13, 18 and 19.
    assert norms(tmp_path) == {0: 0.5, 3: 6.5, 6: 12.5, 9: 18.5}


def test_before_it_is_clipped(tmp_path):
    mox.set_flag("gradient_clip_type", "global_norm")
    mox.set_flag("gradient_clip", 0.5)
    assert norms(tmp_path)[9] == 9.0


def test_the_norm_of_several_losses_and_rows(tmp_path, caplog):
    """3 and 4 of two losses; 12 of a row that is looked up."""
    caplog.set_level("INFO")

    def model_fn(inputs, mode, **kwargs):
        with tf.variable_scope("a"):
            a = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        with tf.variable_scope("b"):
            b = tf.get_variable("w", [], initializer=tf.zeros_initializer())
            table = tf.get_variable("table", [5, 1], initializer=tf.zeros_initializer())
        losses = [3.0 * a, 4.0 * b + 12.0 * tf.reduce_sum(tf.nn.embedding_lookup(table, [2]))]
        return mox.ModelSpec(
            loss=losses,
            var_scopes=[["a"], ["b"]],
            log_info={"a": tf.identity(a)},
            hooks=[mox.GradientNormHook(log=True)],
        )

    run(model_fn=model_fn, optimizer_fn=[sgd(), sgd()])
    assert "step: 0\tgradient_norm: 13" in caplog.messages


def test_nobody_asks_nothing_is_computed(tmp_path, steppers):
    train(lambda batch, w: [], tmp_path)
    train(lambda batch, w: [mox.GradientNormHook()])  # there is no place to write it to
    assert [stepper._step.probes for stepper in steppers] == [{}, {}]


# --- speed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("towers", [1, 2])
def test_throughput(towers, tmp_path, caplog):
    caplog.set_level("INFO")
    mox.set_flag("num_gpus", towers)
    train(lambda batch, w: [mox.ThroughputHook(5, log=True)], tmp_path, steps=17, batch_size=3, save_summary_steps=0)
    found = scalars(tmp_path)
    assert sorted(found["steps_per_sec"]) == [5, 10, 15]  # the first steps only start the clock
    for step, rate in found["steps_per_sec"].items():
        assert rate > 0
        assert found["samples_per_sec"][step] == pytest.approx(3 * towers * rate)
    assert [line.split("\t")[0] for line in caplog.messages if "steps_per_sec" in line] == [
        f"step: {step}" for step in (5, 10, 15)
    ]


def test_throughput_leaves_out_what_is_no_training(monkeypatch):
    written = []

    class Events:
        def add_scalars(self, values, step):
            written.append(values)

    clock = [100.0]
    monkeypatch.setattr("moxing.tensorflow.executor.hooks.throughput.time.perf_counter", lambda: clock[0])
    action = ThroughputAction(10, Events(), log=False)
    action.act(1, Progress(1, LedgerValues(samples=4, steps=1, last={}, means={})))
    clock[0] += 7.0
    action.pause(5.0)
    action.act(11, Progress(11, LedgerValues(samples=44, steps=11, last={}, means={})))
    assert written == [{"steps_per_sec": 5.0, "samples_per_sec": 20.0}]


# --- the profiler -----------------------------------------------------------------------------------------------------


def products(batch, w):
    """Large enough for TensorFlow to take it for an operation worth recording."""
    matrix = tf.fill([300, 300], w * 1e-3)
    return w + tf.reduce_mean(tf.matmul(matrix, matrix, name="the_product"))


def traces(directory):
    return [path.read_bytes() for path in sorted(directory.glob("plugins/profile/*/*.xplane.pb"))]


@pytest.mark.parametrize("start", [0, 4])
def test_a_trace_of_some_steps(start, tmp_path, caplog):
    caplog.set_level("INFO")
    train(lambda batch, w: [mox.ProfilerHook(start, steps=3)], tmp_path, loss=products)
    (trace,) = traces(tmp_path)
    assert b"the_product" in trace
    assert f"Profile written to: {tmp_path / 'plugins' / 'profile'}" in caplog.messages


def test_a_trace_is_written_when_the_run_ends_in_it(tmp_path):
    def loss(batch, w):
        return products(batch, w) + bad_at(6)(batch)

    for place in ("first", "second"):  # the profiler of the first is not left running
        with pytest.raises(NotFiniteError):
            train(lambda batch, w: [mox.ProfilerHook(2, 100, str(tmp_path / place))], loss=loss)  # noqa: B023
        assert b"the_product" in traces(tmp_path / place)[0]


def test_where_a_trace_cannot_be(tmp_path, caplog):
    train(lambda batch, w: [mox.ProfilerHook(20, directory=str(tmp_path / "late")), mox.ProfilerHook()])
    assert "ProfilerHook has no place for its trace" in caplog.text
    assert "ProfilerHook(start_step=20): the run ended at step 10 before." in caplog.text
    train(lambda batch, w: [mox.ThroughputHook(), mox.GradientNormHook()], steps=2)
    assert "ThroughputHook does nothing" in caplog.text and "GradientNormHook does nothing" in caplog.text
    train(lambda batch, w: [], tmp_path, steps=5)
    train(lambda batch, w: [mox.ProfilerHook(3)], tmp_path)
    assert any("begins at step 5, nothing is recorded" in line for line in caplog.messages)


# --- the end ----------------------------------------------------------------------------------------------------------


def test_the_end_is_told(tmp_path):
    ends = []
    result = train(lambda batch, w: [mox.RunEndHook(ends.append)], tmp_path)
    (end,) = ends
    assert (end.reason, end.global_step, end.error) == ("end", 10, None)
    assert end.result is result
    assert end.log_info == {"w": -9.0}


def test_a_run_without_a_step_has_no_values(tmp_path):
    ends = []
    hooks = lambda batch, w: [mox.RunEndHook(ends.append)]  # noqa: E731
    assert train(hooks, tmp_path, steps=3).log_info == {"w": -2.0}
    result = train(hooks, tmp_path, steps=3)
    assert (result.global_step, result.log_info, ends[1].log_info) == (3, {}, {})


def test_an_error_is_told():
    ends = []
    with pytest.raises(NotFiniteError) as caught:
        train(lambda batch, w: [mox.RunEndHook(ends.append)], loss=nan_loss(4), log_every_n_steps=1)
    (end,) = ends
    assert (end.reason, end.global_step, end.error, end.result) == ("error", 4, caught.value, None)
    assert end.log_info == {"w": -3.0}


def test_a_callback_that_fails(caplog):
    def fails(end):
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        train(lambda batch, w: [mox.RunEndHook(fails)])
    with pytest.raises(NotFiniteError):
        train(lambda batch, w: [mox.RunEndHook(fails)], loss=nan_loss(4))
    assert any("RunEndHook failed when the run had ended: RuntimeError('no network')" in m for m in caplog.messages)


def test_a_signal_is_told(tmp_path):
    ends = []

    class Sends(tf.train.SessionRunHook):
        steps = 0

        def after_run(self, context, values):
            self.steps += 1
            if self.steps == 4:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit):
        train(lambda batch, w: [mox.RunEndHook(ends.append), Sends()], tmp_path)
    (end,) = ends
    assert (end.reason, end.error) == ("signal", None)
    assert end.global_step == saved_steps(tmp_path)[-1] == 4
