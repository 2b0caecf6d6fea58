"""How the callbacks may be declared, what they are called with, and the objects that they return."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds
from line_problem import sgd
from small_runs import line_model, numbers, run

import moxing.tensorflow as mox


class Callbacks:
    """Callbacks as methods and as an object; `record` is told the mode and returns the result."""

    def __init__(self, record):
        self._record = record

    def __call__(self, mode, **kwargs):
        return self._record(mode)

    def input_method(self, run_mode, **kwargs):
        return self._record(run_mode)

    def model_method(self, inputs, run_mode, **kwargs):
        return self._record(inputs, run_mode)


def input_forms(record) -> dict[str, Any]:
    def default(mode=None, extra=3):
        assert extra == 3
        return record(mode)

    def no_keywords(*args, **kwargs):
        assert not kwargs
        return record(*args)

    return {
        "(run_mode, **kwargs)": lambda run_mode, **kwargs: record(run_mode),
        "(mode, **kwargs)": lambda mode, **kwargs: record(mode),
        "(mode)": lambda mode: record(mode),
        "(run_mode)": lambda run_mode: record(run_mode),
        "(m)": lambda m: record(m),
        "(*args)": lambda *args: record(*args),
        "(*args, **kwargs)": no_keywords,
        "(mode=None, extra=3)": default,
        "(*, mode)": lambda *, mode: record(mode),
        "object": Callbacks(record),
        "method": Callbacks(record).input_method,
        "partial": functools.partial(lambda path, mode: record(mode), "path"),
    }


def model_forms(record) -> dict[str, Any]:
    return {
        "(inputs, run_mode, **kwargs)": lambda inputs, run_mode, **kwargs: record(inputs, run_mode),
        "(inputs, mode, **kwargs)": lambda inputs, mode, **kwargs: record(inputs, mode),
        "(inputs, mode)": lambda inputs, mode: record(inputs, mode),
        "(inputs, run_mode)": lambda inputs, run_mode: record(inputs, run_mode),
        "(x, m)": lambda x, m: record(x, m),
        "(features, mode=None)": lambda features, mode=None: record(features, mode),
        "(*args)": lambda *args: record(*args),
        "method": Callbacks(record).model_method,
        "partial": functools.partial(lambda inputs, mode, size: record(inputs, mode), size=3),
    }


@pytest.mark.parametrize("form", input_forms(None))
def test_input_fn_signatures(form):
    seen = []

    def record(mode):
        seen.append(mode)
        return numbers(repeat=True)(mode)

    run(input_fn=input_forms(record)[form], max_number_of_steps=1)
    assert seen == ["TRAIN"]
    assert seen[0] is mox.ModeKeys.TRAIN


@pytest.mark.parametrize("form", model_forms(None))
def test_model_fn_signatures(form):
    seen = []

    def record(inputs, mode):
        seen.append((len(inputs), mode))
        return line_model(inputs, mode)

    run(model_fn=model_forms(record)[form], max_number_of_steps=1)
    assert seen == [(1, mox.ModeKeys.TRAIN)]


def test_optimizer_fn_signatures():
    def with_kwargs(**kwargs):
        assert not kwargs
        return sgd()()

    forms = [sgd(), with_kwargs, mox.get_optimizer_fn("sgd", 1.0), [sgd()], (sgd(),)]
    assert [run(optimizer_fn=form).log_info["w"] for form in forms] == [-2.0] * 5


def test_optimizer_fn_comes_last_and_may_add_to_the_graph():
    order = []

    def input_fn(mode):
        order.append("input")
        return numbers(repeat=True)(mode)

    def model_fn(inputs, mode):
        order.append("model")
        return line_model(inputs, mode)

    def optimizer_fn():
        order.append("optimizer")
        step = tf.cast(tf.train.get_or_create_global_step(), tf.float32)
        tf.summary.scalar("rate", step)
        return tf.train.GradientDescentOptimizer(step)

    result = run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=optimizer_fn, max_number_of_steps=4)
    assert order == ["input", "model", "optimizer"]
    assert result.log_info["w"] == -(0 + 1 + 2)


def test_output_fn_signatures(tmp_path):
    run(log_dir=tmp_path)
    seen = []

    def with_kwargs(outputs, **kwargs):
        assert not kwargs
        seen.append(outputs)

    for output_fn in (with_kwargs, seen.append, lambda outputs: seen.append(outputs)):
        run("PREDICT", log_dir=tmp_path, output_fn=output_fn, max_number_of_steps=1)
    assert seen == [[{"w": -3.0}]] * 3


@pytest.mark.parametrize("mode", ["TRAIN", mox.ModeKeys.TRAIN])
def test_run_mode_as_a_string_and_as_a_key(mode):
    assert run(mode).global_step == 3


def test_input_fn_without_a_mode():
    text = error_of(TypeError, input_fn=lambda: tf.constant(1.0))
    assert holds(text, "input_fn is declared as ()", "(mode, **kwargs)")


def test_model_fn_without_a_mode():
    text = error_of(TypeError, model_fn=lambda inputs: None)
    assert holds(text, "model_fn is declared as (inputs)", "(inputs, mode, **kwargs)")


def test_input_spec_index_out_of_range():
    spec = mox.InputSpec().new_input(["a"])
    with pytest.raises(IndexError, match=r"get_input\(1\).*1 groups"):
        spec.get_input(1)


def test_compressor_spec_is_warned_of(caplog):
    assert mox.ModelSpec(compressor_spec=3).loss is None
    assert "model compression is not part of this MoXing" in caplog.text


@pytest.mark.parametrize("version", [-2, True, 1.5, "", "a/b", "..", None])
def test_wrong_version_of_an_export(version):
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with pytest.raises(ValueError, match=r"ExportSpec\(version="):
            mox.ExportSpec({"x": x}, {"y": x}, version=version)


def test_an_export_needs_tensors_by_name():
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with pytest.raises(ValueError, match=r"ExportSpec\(inputs_dict=...\): expected a dict of tensors"):
            mox.ExportSpec({}, {"y": x})
        with pytest.raises(
            TypeError, match=r"ExportSpec\(outputs_dict=...\): 'y' is a builtins.float; expected a tensor"
        ):
            mox.ExportSpec({"x": x}, {"y": 1.0})


def test_modes_equal_their_names():
    assert [mode == mode.value == mode.name for mode in mox.ModeKeys] == [True] * 4
