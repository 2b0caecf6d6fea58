"""Wrong results of `model_fn`: errors that name the field and the value; the collections that it sees."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds, with_w
from line_problem import run, sgd

import moxing.tensorflow as mox
from moxing.tensorflow.executor.build.model import tower_collections


@pytest.mark.parametrize("value", [None, 3.0, ("loss", 1), {"loss": 1}])
def test_model_fn_returns_something_else(value):
    text = error_of(TypeError, model_fn=lambda inputs, mode: value)
    assert holds(text, "model_fn returned", repr(value), "mox.ModelSpec(")


def test_no_loss_in_train():
    text = error_of(ValueError, model_fn=lambda inputs, mode: mox.ModelSpec(log_info={"a": tf.constant(1.0)}))
    assert holds(text, "model_fn", "without loss", "TRAIN", "ModelSpec(loss=...)")


def test_no_log_info_in_eval(log_dir):
    for model_fn in (with_w(loss=lambda w: w), with_w(log_info=lambda w: {})):
        assert holds(error_of(ValueError, "EVAL", log_dir=log_dir, model_fn=model_fn), "without log_info", "EVAL")


def test_no_output_info_in_predict(log_dir):
    text = error_of(ValueError, "PREDICT", log_dir=log_dir, output_fn=print, model_fn=with_w(loss=lambda w: w))
    assert holds(text, "without output_info", "PREDICT", "output_fn")


def test_output_fn_without_output_info():
    def output_fn(outputs):
        pytest.fail("there is no output")

    text = error_of(ValueError, model_fn=with_w(loss=lambda w: w), output_fn=output_fn, output_every_n_steps=1)
    assert holds(text, "output_fn", "output_info")


def test_no_export_spec(tmp_path):
    text = error_of(ValueError, export_model=True, log_dir=tmp_path)
    assert holds(text, "without export_spec", "EXPORT", "mox.ExportSpec(")


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
def test_log_info_that_is_not_scalar(mode, log_dir):
    model_fn = with_w(loss=lambda w: w, log_info=lambda w: {"good": w, "bad": tf.zeros([4, 2]) + w})
    text = error_of(ValueError, mode, log_dir=log_dir, model_fn=model_fn, max_number_of_steps=9)
    assert holds(text, "log_info['bad']", "shape (4, 2)", "scalar", "tf.reduce_mean(")


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ({"a": tf.string}, ["log_info['a']", "string", "number"]),
        ({"a": "text"}, ["log_info['a']", "'text'", "scalar tensor"]),
        ({"a": None}, ["log_info['a']", "None", "scalar tensor"]),
        ({"a": [1.0]}, ["log_info['a']", "[1.0]", "scalar tensor"]),
        ([1.0], ["log_info=[1.0]", "dict"]),
    ],
)
def test_log_info_of_another_type(value, parts):
    def log_info(w):
        return {"a": tf.constant("x")} if value == {"a": tf.string} else value

    assert holds(error_of(TypeError, model_fn=with_w(loss=lambda w: w, log_info=log_info)), *parts)


def test_loss_that_is_not_scalar():
    text = error_of(ValueError, model_fn=with_w(loss=lambda w: w + tf.zeros([2])))
    assert holds(text, "ModelSpec(loss=...)", "shape (2,)", "scalar", "tf.reduce_mean(loss)")
    text = error_of(ValueError, model_fn=with_w(loss=lambda w: [w, w + tf.zeros([2])]), optimizer_fn=[sgd(), sgd()])
    assert holds(text, "ModelSpec(loss=...)[1]", "shape (2,)")


def test_loss_of_another_type():
    assert holds(error_of(TypeError, model_fn=with_w(loss=lambda w: "text")), "loss", "'text'", "scalar tensor")


@pytest.mark.parametrize("name", ["output_info", "hooks", "export_spec"])
def test_model_spec_field_of_another_type(name):
    text = error_of(TypeError, model_fn=with_w(loss=lambda w: w, **{name: lambda w: 3}))
    assert holds(text, f"ModelSpec({name}=3)", "expected")


@pytest.mark.parametrize("value", [None, len])
def test_output_info_that_is_no_tensor(value):
    with pytest.raises((TypeError, ValueError)) as caught:
        run(model_fn=with_w(loss=lambda w: w, output_info=lambda w: {"good": w, "bad": value}))
    assert holds(str(caught.value), "output_info", "'bad'", repr(value))


def test_hook_that_is_none():
    text = error_of(TypeError, model_fn=with_w(loss=lambda w: w, hooks=lambda w: ["text"]))
    assert holds(text, "hooks", "'text'", "mox.AggregativeSessionRunHook", "tf.train.SessionRunHook")


@pytest.mark.parametrize("method", ["support_aggregation", "support_sync_workers", "run_inter_mode"])
def test_aggregative_hook_without_a_method(method):
    methods = {"support_aggregation", "support_sync_workers", "run_inter_mode"} - {method}
    kind = type("MyHook", (mox.AggregativeSessionRunHook,), {name: lambda self: False for name in methods})
    text = error_of(TypeError, model_fn=with_w(loss=lambda w: w, hooks=lambda w: [kind()]))
    assert holds(text, "MyHook", f"{method}()", "True or False")


def test_hook_that_wants_the_inter_mode():
    body = {"support_aggregation": False, "support_sync_workers": False, "run_inter_mode": True}
    kind = type(
        "Inter",
        (mox.AggregativeSessionRunHook,),
        {name: (lambda self, answer=answer: answer) for name, answer in body.items()},
    )
    text = error_of(ValueError, model_fn=with_w(loss=lambda w: w, hooks=lambda w: [kind()]))
    assert holds(text, "Inter", "inter_mode")


def test_two_hooks_that_feed_the_same():
    from moxing.tensorflow.executor.hooks import FeedSessionRunHook

    def model_fn(inputs, mode):
        w = tf.get_variable("w", shape=[])
        x = tf.placeholder(tf.float32, [], name="x")
        return mox.ModelSpec(loss=w * x, hooks=[FeedSessionRunHook({x: 1.0}), FeedSessionRunHook({x: 2.0})])

    assert holds(error_of(ValueError, model_fn=model_fn), "x:0", "FeedSessionRunHook")


def test_each_tower_sees_what_it_added_itself():
    with tf.Graph().as_default():
        tf.add_to_collection("losses", "before")
        for tower in ("first", "second"):
            with tower_collections():
                assert mox.get_collection("losses") == []
                tf.add_to_collection("losses", tower)
                assert mox.get_collection("losses") == [tower]
        assert mox.get_collection("losses") == ["before", "first", "second"] == tf.get_collection("losses")


def test_nested_scopes_and_errors():
    with tf.Graph().as_default():
        try:
            with tower_collections():
                tf.add_to_collection("a", 1)
                with tower_collections():
                    assert mox.get_collection("a") == []
                assert mox.get_collection("a") == [1]
                raise KeyError
        except KeyError:
            pass
        assert mox.get_collection("a") == [1]
