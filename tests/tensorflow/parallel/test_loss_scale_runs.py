"""Loss scaling in whole runs: checkpoints, resumed runs, half precision."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.executor import NotFiniteError
from moxing.tensorflow.parallel import loss_scale

VALUE, GOOD = "moxing/loss_scale/value", "moxing/loss_scale/good_steps"


OPTIMIZERS = {"sgd": lambda: tf.train.GradientDescentOptimizer(0.1), "adam": lambda: tf.train.AdamOptimizer(0.1)}


def assert_equal(one, other, ignoring=()):
    assert set(one) == set(other)
    for name in set(one) - set(ignoring):
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def changed(before, after):
    return {name for name in before if not np.array_equal(before[name], after[name])}


class EveryStep(tf.train.SessionRunHook):
    """Does nothing, and so forces one step per `session.run`."""


ROWS = np.random.RandomState(0).rand(32, 4).astype(np.float32)


def rows(mode):
    """32 rows; the loss of row 5 has a gradient that overflows when it is scaled."""
    slope = np.where(np.arange(32) == 5, 1e35, 1.0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((ROWS, slope)).repeat().make_one_shot_iterator().get_next()


def model_fn(inputs, mode, hooks=None):
    features, slope = inputs
    table = tf.get_variable("table", initializer=tf.reshape(tf.range(20.0) / 10, [5, 4]))
    weights = tf.get_variable("weights", initializer=tf.reshape(tf.range(12.0) / 10, [4, 3]))
    rows = tf.gather(table, tf.cast(features[:, 0] * 5, tf.int32))
    output = tf.layers.batch_normalization(tf.matmul(features * rows, weights), training=mode == mox.ModeKeys.TRAIN)
    # The value stays small, so that only the gradient is large.
    loss = tf.reduce_mean(tf.square(output)) + tf.reduce_mean(
        (slope - 1) * (weights[0, 0] - tf.stop_gradient(weights[0, 0]))
    )
    return mox.ModelSpec(loss=loss, log_info={"loss": loss}, hooks=hooks)


def run(directory, steps, mode="TRAIN", scale="dynamic", model_fn=model_fn, **arguments):
    mox.set_flag("loss_scale", scale)
    settings = {
        "input_fn": rows,
        "model_fn": model_fn,
        "optimizer_fn": OPTIMIZERS["adam"],
        "run_mode": mode,
        "batch_size": 2,
        "log_dir": str(directory),
        "max_number_of_steps": steps,
    }
    return mox.run(**{**settings, **arguments})


def saved(directory):
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(directory)))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.slow
def test_many_steps_per_call_equal_single_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(loss_scale, "_GOOD_STEPS_TO_DOUBLE", 4)
    many = run(tmp_path / "many", 40)
    single = run(tmp_path / "single", 40, model_fn=lambda inputs, mode: model_fn(inputs, mode, [EveryStep()]))
    assert many == type(many)(**{**vars(single), "checkpoint_path": many.checkpoint_path})
    assert_equal(saved(tmp_path / "many"), saved(tmp_path / "single"))
    # Three of every 16 batches double it and one halves it: it overflowed, and it grew.
    assert saved(tmp_path / "many")[VALUE] > 2**15
    assert saved(tmp_path / "many")["global_step"] == 40


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(loss_scale, "_GOOD_STEPS_TO_DOUBLE", 5)
    run(tmp_path / "whole", 30)
    run(tmp_path / "parts", 11)
    part = saved(tmp_path / "parts")
    assert (part[VALUE], part[GOOD]) == (2**15, 3)  # halved in step 3, doubled in step 8
    run(tmp_path / "parts", 30)
    assert_equal(saved(tmp_path / "whole"), saved(tmp_path / "parts"))


@pytest.mark.parametrize(("first", "second"), [(1, "dynamic"), ("dynamic", 1), ("dynamic", 512.0)])
def test_a_checkpoint_of_a_run_with_another_scale(first, second, tmp_path, caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    run(tmp_path, 1, scale=first)
    before = saved(tmp_path)
    assert (VALUE in before) == (first == "dynamic")
    result = run(tmp_path, 2, scale=second)
    after = saved(tmp_path)
    assert result.global_step == after["global_step"] == 2
    assert {"weights", "weights/Adam", "beta1_power"} < changed(before, before | after)
    assert (VALUE in after) == (second == "dynamic")
    if second == "dynamic":
        assert (after[VALUE], after[GOOD]) == (2**15, 1)
    assert not caplog.records


@pytest.mark.slow
def test_evaluation_of_such_a_checkpoint(tmp_path):
    run(tmp_path, 4)
    values = [run(tmp_path, 5, "EVAL", scale).log_info for scale in ("dynamic", 1)]
    assert values[0] == values[1]
    assert run(tmp_path / "other", 5, "EVAL", checkpoint_path=str(tmp_path)).log_info == values[0]


def test_half_precision_finds_its_scale(tmp_path):
    """Gradients of 30 times the scale fit into half precision from 2^11 on: four steps are lost."""

    def build(inputs, mode):
        w = tf.get_variable("w", initializer=0.0)
        loss = tf.cast(tf.cast(w, tf.float16) * 30.0, tf.float32)
        return mox.ModelSpec(loss=loss, log_info={"w": w})

    run(tmp_path, 10, model_fn=build, optimizer_fn=lambda: tf.train.GradientDescentOptimizer(1 / 30))
    values = saved(tmp_path)
    assert (values["global_step"], values[VALUE], values[GOOD]) == (10, 2**11, 6)
    np.testing.assert_allclose(values["w"], -6, rtol=1e-3)


def test_it_doubles_after_2000_steps(tmp_path):
    def build(inputs, mode):
        w = tf.get_variable("w", initializer=1.0)
        return mox.ModelSpec(loss=tf.square(w))

    arguments = {"model_fn": build, "log_every_n_steps": 0, "save_summary_steps": 0, "optimizer_fn": OPTIMIZERS["sgd"]}
    run(tmp_path, 1999, **arguments)
    assert (saved(tmp_path)[VALUE], saved(tmp_path)[GOOD]) == (2**15, 1999)
    run(tmp_path, 2001, **arguments)
    assert (saved(tmp_path)[VALUE], saved(tmp_path)[GOOD]) == (2**16, 1)


@pytest.mark.parametrize("scale", [1024, "dynamic"])
def test_a_loss_that_is_not_finite_itself_still_ends_the_run(scale, tmp_path):
    """No scale helps there."""

    def build(inputs, mode):
        w = tf.get_variable("w", initializer=1.0)
        step = tf.train.get_or_create_global_step()
        return mox.ModelSpec(loss=w * tf.where(step < 2, 1.0, np.nan))

    with pytest.raises(NotFiniteError, match="Step 2"):
        run(tmp_path, 5, model_fn=build, scale=scale)


def test_frozen_variables_get_no_slots_and_no_gradients(tmp_path):
    mox.set_flag("trainable_exclude_patterns", "table")
    run(tmp_path, 2)
    values = saved(tmp_path)
    assert "weights/Adam" in values
    assert not [name for name in values if name.startswith("table/")]
    np.testing.assert_array_equal(values["table"], np.arange(20, dtype=np.float32).reshape(5, 4) / 10)
