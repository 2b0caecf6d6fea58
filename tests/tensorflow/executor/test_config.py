"""Wrong arguments of `mox.run`: errors before anything is built."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, forbidden_model, holds
from line_problem import line_model, number_input, sgd

import moxing.tensorflow as mox


@pytest.mark.parametrize("value", ["invalid", "Train", "train", None, 3, "TRAINING"])
def test_wrong_run_mode(value):
    text = error_of(ValueError, value, model_fn=forbidden_model)
    assert holds(text, f"run_mode={value!r}", "mox.ModeKeys.TRAIN", "mox.ModeKeys.EVAL", "mox.ModeKeys.PREDICT")


def test_a_misspelt_run_mode_gets_a_hint():
    assert holds(error_of(ValueError, "TRIAN"), "Did you mean mox.ModeKeys.TRAIN?")
    assert holds(error_of(ValueError, "evaluation"), "Did you mean mox.ModeKeys.EVAL?")


def test_run_mode_not_given():
    with pytest.raises(ValueError, match="run_mode='invalid'"):
        mox.run(input_fn=number_input, model_fn=line_model, optimizer_fn=sgd(), max_number_of_steps=1)


@pytest.mark.parametrize("value", ["EXPORT", mox.ModeKeys.EXPORT])
def test_run_mode_export(value):
    assert holds(error_of(ValueError, value), "EXPORT", "export_model=mox.ExportKeys.TF_SERVING")


def test_inter_mode_is_none_of_those():
    assert holds(error_of(ValueError, inter_mode="TRAIN"), "inter_mode='TRAIN'", "mox.ModeKeys.EVAL")
    text = error_of(ValueError, mode="EVAL", inter_mode=mox.ModeKeys.EVAL)
    assert holds(text, "run_mode='EVAL'", "inter_mode=", "leave it out")


def test_fetch_strategy_fn_is_refused():
    assert holds(error_of(ValueError, fetch_strategy_fn=len), "fetch_strategy_fn", "leave it out")


def test_predict_needs_output_fn():
    assert holds(error_of(ValueError, "PREDICT", model_fn=forbidden_model), "PREDICT", "output_fn")


@pytest.mark.parametrize("name", ["input_fn", "model_fn"])
def test_missing_function(name):
    assert holds(error_of(ValueError, **{name: None}), f"{name}=None", "function")


@pytest.mark.parametrize("name", ["input_fn", "model_fn", "optimizer_fn", "output_fn"])
def test_something_else_instead_of_a_function(name):
    assert holds(error_of(TypeError, **{name: "text"}), name, "expected a function", "'text'", "str")


def test_missing_optimizer_fn():
    assert holds(error_of(ValueError, optimizer_fn=None), "optimizer_fn", "mox.get_optimizer_fn('sgd', 0.01)")
    assert holds(error_of(ValueError, optimizer_fn=[]), "optimizer_fn=[]", "one function for every loss")


def test_optimizer_instance():
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    for value in (optimizer, [sgd(), optimizer]):
        text = error_of(TypeError, optimizer_fn=value, model_fn=forbidden_model)
        assert holds(text, "optimizer_fn", "'MomentumOptimizer' object is not callable", "lambda: MomentumOptimizer(")


def test_keras_optimizer_instance():
    text = error_of(TypeError, optimizer_fn=tf.keras.optimizers.SGD(0.1))
    assert holds(text, "optimizer_fn", "SGD", "not callable", "lambda")


@pytest.mark.parametrize("value", [None, 3, "sgd"])
def test_optimizer_fn_that_returns_no_optimizer(value):
    text = error_of(TypeError, optimizer_fn=lambda: value)
    assert holds(text, "optimizer_fn returned", repr(value), "tf.train.Optimizer")


def test_learning_rate_of_another_graph():
    with tf.Graph().as_default():
        rate = tf.constant(0.1, name="outside")
    inside = mox.get_optimizer_fn("sgd", rate)
    text = error_of(ValueError, optimizer_fn=mox.get_optimizer_wrapper_fn("lars", inside))
    assert holds(text, "outside:0", "create it inside optimizer_fn", "lambda: ...")


@pytest.mark.parametrize("value", [0, -1, 2.5, "32", True, float("nan"), float("inf")])
def test_wrong_batch_size(value):
    text = error_of(ValueError, batch_size=value, model_fn=forbidden_model)
    assert holds(text, f"batch_size={value!r}", "integer from 1")


@pytest.mark.parametrize("name", ["log_every_n_steps", "output_every_n_steps", "save_summary_steps"])
@pytest.mark.parametrize("value", [-1, 0.5, "10", True])
def test_wrong_period(name, value):
    assert holds(error_of(ValueError, **{name: value}), f"{name}={value!r}", "integer from 0")


@pytest.mark.parametrize("name", ["save_model_secs", "save_model_steps"])
@pytest.mark.parametrize("value", [-1, "10", True])
def test_wrong_save_period(name, value):
    assert holds(error_of(ValueError, **{name: value}), f"{name}={value!r}", "number from 0", "None for never")


@pytest.mark.parametrize("value", [None, 0, -5, 1.5, "many", True, float("nan")])
def test_wrong_max_number_of_steps(value):
    text = error_of(ValueError, max_number_of_steps=value, model_fn=forbidden_model)
    assert holds(text, f"max_number_of_steps={value!r}")
    assert "sys.maxsize" in text or "integer" in text


@pytest.mark.parametrize("value", ["TF_SERVE", 3, "yes"])
def test_wrong_export_model(value):
    assert holds(error_of(ValueError, export_model=value), f"export_model={value!r}", "mox.ExportKeys.TF_SERVING")


def test_export_needs_a_log_dir():
    assert holds(error_of(ValueError, export_model=mox.ExportKeys.TF_SERVING), "export_model", "log_dir")


def test_export_after_predict(tmp_path):
    text = error_of(ValueError, "PREDICT", output_fn=print, export_model=True, log_dir=tmp_path)
    assert holds(text, "export_model", "TRAIN or EVAL", "PREDICT")


@pytest.mark.parametrize("name", ["log_dir", "checkpoint_path"])
def test_path_that_is_none(name):
    assert holds(error_of(TypeError, **{name: 3}), f"{name}=3", "path", "int")


@pytest.mark.parametrize("name", ["log_dir", "checkpoint_path"])
def test_url_that_nothing_serves(name):
    assert holds(
        error_of(mox.file.UnsupportedSchemeError, **{name: "nosuch://host/log"}),
        f"{name}='nosuch://host/log'",
        "nosuch",
    )
