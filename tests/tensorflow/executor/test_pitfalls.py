"""The manual's pitfalls (its headings 4-0-1 and so on): the trap is gone, or the error says what to do."""

from __future__ import annotations

import re
from typing import Any

import line_problem
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from line_problem import sgd

import moxing.tensorflow as mox


def number_input(mode, **kwargs):
    return tf.data.Dataset.range(8).make_one_shot_iterator().get_next()


def run(mode: Any = "TRAIN", **arguments: Any) -> mox.RunResult:
    return line_problem.run(mode, **{"input_fn": number_input, **arguments})


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tensorflow"]


@pytest.fixture(autouse=True)
def info_lines(caplog):
    caplog.set_level("INFO", logger="tensorflow")


# --- 4-0-1: one input is still a list ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL", "PREDICT"])
def test_4_0_1_one_input_arrives_in_a_list(mode, tmp_path):
    seen = []

    def model_fn(inputs, mode, **kwargs):
        seen.append(inputs)
        w = tf.get_variable("w", shape=[])
        total = tf.reduce_sum(tf.cast(inputs[0], tf.float32)) * w
        return mox.ModelSpec(loss=total, log_info={"total": total}, output_info={"numbers": inputs[0]})

    run(log_dir=tmp_path, model_fn=model_fn)
    run(mode, log_dir=tmp_path, model_fn=model_fn, output_fn=len, max_number_of_steps=4)
    for inputs in seen:
        assert isinstance(inputs, list)
        assert len(inputs) == 1
        assert inputs[0].shape.as_list() == [None]


# --- 4-1-2: get_collection --------------------------------------------------------------------------------------------


def test_4_1_2_get_collection_holds_what_model_fn_made():
    seen = {}

    def input_fn(mode, **kwargs):
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(100.0))
        return number_input(mode)

    def model_fn(inputs, mode, **kwargs):
        seen["at first"] = mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        w = tf.get_variable(
            "w", initializer=2.0, regularizer=lambda variable: tf.multiply(variable, variable, name="penalty")
        )
        seen["losses"] = mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        seen["variables"] = mox.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
        seen["empty"] = mox.get_collection("nobody put anything here")
        loss = tf.add_n(seen["losses"]) + 0.0 * w
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    result = run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=sgd(0.25), max_number_of_steps=2)
    assert seen["at first"] == seen["empty"] == []
    assert len(seen["losses"]) == 1
    assert [variable.op.name for variable in seen["variables"]] == ["w"]
    assert result.log_info["loss"] == 1.0  # w is 2 and then 1: the penalty alone is trained


def test_4_1_2_the_native_way_works_on_one_tower():
    def model_fn(inputs, mode, **kwargs):
        w = tf.get_variable("w", initializer=2.0, regularizer=lambda variable: variable * variable)
        native = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert [loss.name for loss in native] == [
            loss.name for loss in mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        ]
        assert [variable.op.name for variable in tf.trainable_variables()] == ["w"]
        return mox.ModelSpec(loss=tf.add_n(native) + 0.0 * w)

    assert run(model_fn=model_fn).global_step == 3


# --- 4-4-3: the export directory exists already -----------------------------------------------------------------------


def exported_model(version):
    def model_fn(inputs, mode, **kwargs):
        w = tf.get_variable("w", shape=[], initializer=tf.zeros_initializer())
        x = tf.cast(inputs[0], tf.float32)
        spec = mox.ExportSpec(inputs_dict={"x": inputs[0]}, outputs_dict={"y": x + w}, version=version)
        loss = tf.identity(w)
        return mox.ModelSpec(loss=loss, log_info={"loss": loss}, export_spec=spec)

    return model_fn


def export(log_dir, version, steps) -> mox.RunResult:
    return run(
        model_fn=exported_model(version),
        log_dir=log_dir,
        max_number_of_steps=steps,
        export_model=mox.ExportKeys.TF_SERVING,
    )


@pytest.mark.parametrize("version", [1, "model"])
def test_4_4_3_existing_export_directory(version, tmp_path):
    first = export(tmp_path, version, 3)
    assert first.export_path == str(tmp_path / str(version))
    with pytest.raises(AssertionError) as caught:
        export(tmp_path, version, 4)
    text = str(caught.value)
    assert f"Export directory already exists. Please specify a different export directory: {first.export_path}" in text
    assert "-1" in text
    # It is said before the training, not after it.
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-3")


def test_4_4_3_the_next_number_by_itself(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "x9").mkdir()
    assert export(tmp_path, -1, 3).export_path == str(tmp_path / "8")
    assert export(tmp_path, -1, 4).export_path == str(tmp_path / "9")
    assert export(tmp_path / "new", -1, 3).export_path == str(tmp_path / "new" / "1")


# --- 4-4-4: tf.Variable in model_fn -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "momentum"])
def test_4_4_4_tf_variable_is_trained_saved_and_restored(optimizer, tmp_path):
    def input_fn(mode, **kwargs):
        return tf.data.Dataset.from_tensor_slices(np.arange(1, 9, dtype=np.float32)).repeat()

    def model_fn(inputs, mode, **kwargs):
        with tf.variable_scope("net"):
            w = tf.Variable(tf.zeros([2]), name="w")
        b = tf.Variable(1.0)
        counter = tf.Variable(5, trainable=False, name="counter")
        loss = tf.reduce_mean(tf.square(inputs[0] * tf.reduce_sum(w) + b - 3.0 * inputs[0]))
        return mox.ModelSpec(loss=loss, log_info={"sum": tf.reduce_sum(w), "b": b + 0.0, "counter": counter + 0})

    settings = {"model_fn": model_fn, "input_fn": input_fn, "log_dir": tmp_path}
    optimizer_fn = mox.get_optimizer_fn(optimizer, 0.01)
    run(optimizer_fn=optimizer_fn, max_number_of_steps=20, **settings)
    reader = tf.train.NewCheckpointReader(str(tmp_path / "model.ckpt-20"))
    names = reader.get_variable_to_shape_map()
    assert {"net/w", "Variable", "counter", "global_step"} <= set(names)
    w, b = reader.get_tensor("net/w"), reader.get_tensor("Variable")
    assert 0.1 < w.sum() < 6
    assert b != 1.0
    evaluated = run("EVAL", **settings).log_info
    assert evaluated["sum"] == pytest.approx(float(w.sum()), rel=1e-6)
    assert evaluated["b"] == pytest.approx(float(b), rel=1e-6)
    assert evaluated["counter"] == 5
    # A second run goes on from there.
    result = run(optimizer_fn=optimizer_fn, max_number_of_steps=21, **settings)
    assert result.log_info["sum"] == pytest.approx(float(w.sum()), rel=1e-6)


# --- 5-1-1: an optimizer instead of a function that returns one -------------------------------------------------------


def test_5_1_1_optimizer_instance():
    with pytest.raises(TypeError) as caught:
        run(optimizer_fn=tf.train.MomentumOptimizer(learning_rate=0.01, momentum=0.9))
    assert "'MomentumOptimizer' object is not callable" in str(caught.value)
    assert "optimizer_fn=lambda: MomentumOptimizer(...)" in str(caught.value)
    remedy = run(optimizer_fn=lambda: tf.train.MomentumOptimizer(learning_rate=0.01, momentum=0.9))
    assert remedy.global_step == 3


# --- 6-0-1: a run that ends at once -----------------------------------------------------------------------------------


def test_6_0_1_the_target_is_reached_already(tmp_path, caplog):
    run(log_dir=tmp_path)
    caplog.clear()
    result = run(log_dir=tmp_path)
    assert result.global_step == 3
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-3")
    lines = messages(caplog)
    assert "Running will end at step: 3" in lines
    (told,) = [line for line in lines if "has reached step" in line]
    for part in (str(tmp_path), "step 3", "larger max_number_of_steps", "another log_dir", "--restart"):
        assert part in told
    assert not [line for line in lines if line.startswith("step:")]


def test_6_0_1_fewer_steps_than_were_done(tmp_path, caplog):
    run(log_dir=tmp_path, max_number_of_steps=4)
    assert run(log_dir=tmp_path, max_number_of_steps=2).global_step == 4
    assert any("reached step 4 already and max_number_of_steps is 2" in line for line in messages(caplog))


@pytest.mark.slow
def test_6_0_1_the_three_ways_on(tmp_path, caplog):
    def weights(directory):
        return tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(directory))).get_tensor("w")

    endless = {"input_fn": lambda mode: tf.data.Dataset.range(8).repeat()}
    run(log_dir=tmp_path / "a", **endless)
    assert run(log_dir=tmp_path / "a", max_number_of_steps=5, **endless).global_step == 5
    assert weights(tmp_path / "a") == -5
    assert run(log_dir=tmp_path / "b", **endless).global_step == 3
    mox.set_flag("restart", True)
    assert run(log_dir=tmp_path / "a", **endless).global_step == 3
    assert weights(tmp_path / "a") == -3
    assert any("--restart: moved the checkpoints" in line for line in messages(caplog))


def test_6_0_1_the_export_is_done_all_the_same(tmp_path):
    run(log_dir=tmp_path, model_fn=exported_model("model"))
    result = export(tmp_path, "model", 3)
    assert result.global_step == 3
    assert (tmp_path / "model" / "saved_model.pb").is_file()


# --- 6-0-2: an evaluation gives the same number every time ------------------------------------------------------------


@pytest.mark.parametrize("first_clone", [True, False])
def test_6_0_2_two_evaluations_are_equal(first_clone, tmp_path, caplog):
    mox.set_flag("log_first_clone", first_clone)
    data = np.random.RandomState(0).rand(37, 3).astype(np.float32)

    def input_fn(mode, **kwargs):
        return tf.data.Dataset.from_tensor_slices(data).make_one_shot_iterator().get_next()

    def model_fn(inputs, mode, **kwargs):
        w = tf.get_variable("w", shape=[3, 1], initializer=tf.ones_initializer())
        accuracy = tf.reduce_mean(tf.cast(tf.matmul(inputs[0], w) > 1.5, tf.float32))
        return mox.ModelSpec(loss=tf.reduce_mean(tf.matmul(inputs[0], w)), log_info={"accuracy": accuracy})

    settings = {"input_fn": input_fn, "model_fn": model_fn, "log_dir": tmp_path, "batch_size": 5}
    run(**settings, optimizer_fn=sgd(0.0))
    results = [run("EVAL", **settings, max_number_of_steps=100) for _ in range(2)]
    expected = np.mean(data.sum(axis=1) > 1.5)
    assert results[0].log_info == results[1].log_info
    assert results[0].log_info["accuracy"] == pytest.approx(expected, abs=1e-6)
    assert results[0].samples == 37
    lines = [line for line in messages(caplog) if line.startswith("[EVAL]")]
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert f"accuracy: {expected:.3f}" in lines[0]


def test_6_0_2_the_flag_on_the_command_line(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["script.py", "--log_first_clone=False"])
    run(log_dir=tmp_path)
    assert mox.get_flag("log_first_clone") is False
    assert run("EVAL", log_dir=tmp_path).log_info["w"] == -3


# --- 4.8: mox.var_scope -----------------------------------------------------------------------------------------------


def test_4_8_var_scope_prints_as_in_the_manual():
    with tf.Graph().as_default():
        with mox.var_scope(force_dtype=tf.float32):
            a = tf.get_variable("a", shape=[], dtype=tf.float16)
        assert str(a) == 'Tensor("Cast:0", shape=(), dtype=float16)'
        (variable,) = tf.global_variables()
        # The manual prints `float32_ref`: a resource variable is no reference.
        assert re.fullmatch(r"<tf\.Variable 'a:0' shape=\(\) dtype=float32(_ref)?>", str(variable))
        assert variable.dtype.base_dtype == tf.float32


def test_4_8_var_scope_outside_and_other_types():
    with tf.Graph().as_default():
        with mox.var_scope(force_dtype=tf.float32):
            same = tf.get_variable("same", shape=[2])
            whole = tf.get_variable("whole", shape=[2], dtype=tf.int32, initializer=tf.zeros_initializer())
        after = tf.get_variable("after", shape=[2], dtype=tf.float16)
        with mox.var_scope():
            nothing = tf.get_variable("nothing", shape=[2], dtype=tf.float16)
        types = {variable.op.name: variable.dtype.base_dtype for variable in tf.global_variables()}
        assert types == {"same": tf.float32, "whole": tf.int32, "after": tf.float16, "nothing": tf.float16}
        assert [tf.is_tensor(value) and value.dtype.base_dtype for value in (same, whole, after, nothing)] == [
            tf.float32,
            tf.int32,
            tf.float16,
            tf.float16,
        ]


def test_4_8_wrong_force_dtype():
    with pytest.raises(TypeError, match=r"force_dtype='fp32'.*tf\.float32"), mox.var_scope(force_dtype="fp32"):
        pass


def test_4_8_var_scope_trains_in_float32(tmp_path):
    """Steps too small for float16 still add up in the stored variable."""

    def model_fn(inputs, mode, **kwargs):
        with tf.variable_scope("net"), mox.var_scope(force_dtype=tf.float32):
            w = tf.get_variable("w", shape=[], dtype=tf.float16, initializer=tf.ones_initializer())
            start = tf.get_variable("start", dtype=tf.float16, initializer=tf.constant(2.0, tf.float16))
        assert w.dtype == start.dtype == tf.float16
        return mox.ModelSpec(loss=tf.cast(w * start, tf.float32))

    run(model_fn=model_fn, log_dir=tmp_path, optimizer_fn=sgd(1e-5), max_number_of_steps=4)
    reader = tf.train.NewCheckpointReader(str(tmp_path / "model.ckpt-4"))
    types = reader.get_variable_to_dtype_map()
    assert types["net/w"] == types["net/start"] == tf.float32
    assert reader.get_tensor("net/w") == pytest.approx(1 - 4 * 2e-5, abs=2e-7)
