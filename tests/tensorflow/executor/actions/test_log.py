"""The log lines of a run."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from small_runs import Recorder, messages, run, scalar, step_lines

import moxing.tensorflow as mox


@pytest.fixture(autouse=True)
def info_lines(caplog):
    caplog.set_level("INFO", logger="tensorflow")


def test_train_log_lines(caplog):
    run(max_number_of_steps=25)
    assert "Running will end at step: 25" in messages(caplog)
    expected = [(step, step, f"\tw: {-step:.3f}") for step in (0, 10, 20, 24)]
    assert [(step, total, text.replace("-0.000", "0.000")) for step, total, text in step_lines(caplog)] == [
        (step, total, text.replace("-0.000", "0.000")) for step, total, text in expected
    ]


@pytest.mark.parametrize(("every", "expected"), [(1, [0, 1, 2, 3, 4]), (4, [0, 4]), (3, [0, 3, 4]), (100, [0, 4])])
def test_log_period(every, expected, caplog):
    run(max_number_of_steps=5, log_every_n_steps=every)
    assert [step for step, _, _ in step_lines(caplog)] == expected


@pytest.mark.parametrize("every", [0, None])
def test_no_log_lines(every, caplog):
    run(max_number_of_steps=5, log_every_n_steps=every)
    assert step_lines(caplog) == []


def test_log_line_of_several_values_keeps_their_order(caplog):
    def model_fn(inputs, mode):
        w = scalar()
        values = {
            "zeta": tf.constant(1.23456),
            "a b": tf.constant(7),
            "yes": tf.constant(True),
            "n": 2.5,
            "m": np.float32(3),
        }
        return mox.ModelSpec(loss=w, log_info=values)

    result = run(model_fn=model_fn, max_number_of_steps=1)
    ((_, _, text),) = step_lines(caplog)
    assert text == "\tzeta: 1.235\ta b: 7.000\tyes: 1.000\tn: 2.500\tm: 3.000"
    assert list(result.log_info) == ["zeta", "a b", "yes", "n", "m"]
    assert all(type(value) is float for value in result.log_info.values())


def test_variables_as_loss_and_log_info():
    def model_fn(inputs, mode):
        w = tf.get_variable("w", shape=[], initializer=tf.ones_initializer(), trainable=False)
        loss = tf.get_variable("loss", shape=[], initializer=tf.ones_initializer())
        return mox.ModelSpec(loss=loss, log_info={"w": w})

    assert run(model_fn=model_fn).log_info == {"w": 1.0}


@pytest.mark.parametrize("single_steps", [False, True])
def test_log_info_is_of_before_the_step_s_update(single_steps, caplog):
    """Nothing ties these reads to the update but the run itself: a line must not mix before and after."""

    def model_fn(inputs, mode):
        w = scalar()
        step = tf.identity(tf.train.get_or_create_global_step())
        hooks = [Recorder()] if single_steps else None
        return mox.ModelSpec(loss=w, log_info={"w": w, "step": step}, hooks=hooks)

    run(model_fn=model_fn, max_number_of_steps=20, log_every_n_steps=1)
    found = [text.replace("-0.000", "0.000") for _, _, text in step_lines(caplog)]
    assert found == [f"\tw: {-step if step else 0:.3f}\tstep: {step:.3f}" for step in range(20)]


def test_log_info_of_unknown_rank(caplog):
    def model_fn(inputs, mode):
        value = tf.py_func(lambda: np.float32(1.5), [], tf.float32)
        return mox.ModelSpec(loss=scalar(), log_info={"value": value})

    assert run(model_fn=model_fn).log_info == {"value": 1.5}


def test_train_without_log_info(caplog):
    assert run(model_fn=lambda inputs, mode: mox.ModelSpec(loss=scalar()), max_number_of_steps=1).log_info == {}
    assert step_lines(caplog) == [(0, 0, "")]


def sample_rates(caplog) -> list[float]:
    lines = [line for line in messages(caplog) if line.startswith("step:")]
    return [float(re.search(r"sample/sec: (\S+)", line)[1]) for line in lines]


@pytest.mark.parametrize(("batch_size", "counted"), [(7, 7), (None, 20)])
def test_sample_rate_uses_the_declared_batch_size(batch_size, counted, caplog, monkeypatch):
    """The clock is replaced: 1 s goes by with every look at it."""
    from moxing.tensorflow.executor.actions import log

    clock = SimpleNamespace(now=0.0)

    def perf_counter():
        clock.now += 1.0
        return clock.now

    monkeypatch.setattr(log, "time", SimpleNamespace(perf_counter=perf_counter))
    run(input_fn=lambda mode: tf.data.Dataset.range(60).batch(20), batch_size=batch_size, auto_batch=False,
        log_every_n_steps=1)  # fmt: skip
    rates = sample_rates(caplog)
    assert len(rates) == 3
    for rate in rates:
        ticks = counted / rate
        assert ticks == pytest.approx(round(ticks), abs=0.01)


def test_resumed_run_goes_on_counting(tmp_path, caplog):
    run(log_dir=tmp_path, max_number_of_steps=3)
    caplog.clear()
    run(log_dir=tmp_path, max_number_of_steps=8, log_every_n_steps=2)
    assert [step for step, _, _ in step_lines(caplog)] == [4, 6, 7]
    assert all(step == total for step, total, _ in step_lines(caplog))


def test_global_steps_per_second(caplog):
    run(max_number_of_steps=250)
    assert len([line for line in messages(caplog) if re.fullmatch(r"global_step/sec: \S+", line)]) == 2


def test_saving_is_told(tmp_path, caplog):
    run(log_dir=tmp_path, max_number_of_steps=4, save_model_steps=2)
    told = [line for line in messages(caplog) if line.startswith("Saving checkpoints for")]
    assert told == [f"Saving checkpoints for {step} into {tmp_path / 'model.ckpt'}." for step in (0, 2, 4)]
