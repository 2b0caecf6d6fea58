"""Bad input: every error has the right type and names the argument, what was given and what would be right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from line_problem import line_model, number_input, run, sgd

import moxing.tensorflow as mox
from moxing.framework.flags import FlagError, FlagNotAvailableError
from moxing.tensorflow.cluster.roles import RoleError
from moxing.tensorflow.executor import NotFiniteError


def error_of(kind: type[BaseException], *args: Any, **arguments: Any) -> str:
    with pytest.raises(kind) as caught:
        run(*args, **arguments)
    assert type(caught.value) is kind
    return str(caught.value)


def holds(text: str, *parts: str) -> bool:
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in: {text}"
    return True


def forbidden_model(inputs, mode):
    pytest.fail("model_fn was called although an argument is wrong")


# --- arguments of mox.run, before anything is built -------------------------------------------------------------------


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
    assert holds(text, "outside:0", "make it inside optimizer_fn", "lambda: ...")


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


# --- what callbacks declare and return --------------------------------------------------------------------------------


def test_input_fn_without_a_mode():
    text = error_of(TypeError, input_fn=lambda: tf.constant(1.0))
    assert holds(text, "input_fn is declared as ()", "(mode, **kwargs)")


def test_model_fn_without_a_mode():
    text = error_of(TypeError, model_fn=lambda inputs: None)
    assert holds(text, "model_fn is declared as (inputs)", "(inputs, mode, **kwargs)")


@pytest.mark.parametrize(
    ("make", "place", "kind"),
    [
        (lambda: np.zeros([2, 3], np.float32), "[0]", "numpy array of shape (2, 3) and type float32"),
        (lambda: (tf.constant(1.0), np.float64(2)), "[1]", "numpy array of shape () and type float64"),
        (lambda: {"a": tf.constant(1.0), "b": {"c": np.arange(3)}}, "['b']['c']", "numpy array of shape (3,)"),
        (lambda: mox.InputSpec().new_input([tf.constant(1.0), np.ones(2)]), "[0][1]", "numpy array of shape (2,)"),
        (lambda: [tf.constant(1.0), "text"], "[1]", "'text'"),
        (lambda: 3.5, "[0]", "3.5"),
        (lambda: None, "[0]", "None"),
        (lambda: len, "[0]", "len"),
        (lambda: tf.ragged.constant([[1], [2, 3]]), "[0]", "RaggedTensor"),
    ],
)
def test_input_fn_returns_no_tensor(make, place, kind):
    text = error_of(TypeError, input_fn=lambda mode: make(), model_fn=forbidden_model)
    assert holds(
        text, "input_fn", f"position {place}", kind, "expected a tf.Tensor", "tf.data.Dataset.from_tensor_slices"
    )


@pytest.mark.parametrize("value", [[], (), {}, [[], {}]])
def test_input_fn_returns_nothing(value):
    text = error_of(ValueError, input_fn=lambda mode: value, model_fn=forbidden_model)
    assert holds(text, "input_fn returned", repr(value), "at least one tensor")


def test_empty_input_spec():
    assert holds(error_of(ValueError, input_fn=lambda mode: mox.InputSpec()), "input_fn", "at least one tensor")


def test_input_spec_index_out_of_range():
    spec = mox.InputSpec().new_input(["a"])
    with pytest.raises(IndexError, match=r"get_input\(1\).*1 groups"):
        spec.get_input(1)


def test_data_set_that_is_empty():
    def empty(mode):
        return tf.data.Dataset.range(0).make_one_shot_iterator().get_next()

    assert holds(error_of(ValueError, input_fn=empty), "input_fn", "no data")


def test_sparse_beside_unknown_size():
    def mixed(mode):
        sparse = tf.sparse.from_dense(tf.constant([1, 0]))
        size = tf.random_uniform([], 1, 3, tf.int32, seed=1)
        return sparse, tf.zeros([size])

    assert holds(error_of(ValueError, input_fn=mixed), "input_fn", "sparse", "set_shape", "auto_batch=False")


def test_iterator_mixed_with_a_queue():
    def mixed(mode):
        element = tf.data.Dataset.range(9).make_one_shot_iterator().get_next()
        queued = tf.train.input_producer(tf.constant([1, 2], tf.int64)).dequeue()
        return element + queued

    text = error_of(ValueError, input_fn=mixed, batch_size=None)
    assert holds(text, "input_fn", "queue", "tf.data")


@pytest.mark.parametrize("value", [None, 3.0, ("loss", 1), {"loss": 1}])
def test_model_fn_returns_something_else(value):
    text = error_of(TypeError, model_fn=lambda inputs, mode: value)
    assert holds(text, "model_fn returned", repr(value), "mox.ModelSpec(")


def test_no_loss_in_train():
    text = error_of(ValueError, model_fn=lambda inputs, mode: mox.ModelSpec(log_info={"a": tf.constant(1.0)}))
    assert holds(text, "model_fn", "without loss", "TRAIN", "ModelSpec(loss=...)")


def trained(directory: Path, **arguments: Any) -> Path:
    run(log_dir=directory, **arguments)
    return directory


@pytest.fixture
def log_dir(tmp_path):
    return trained(tmp_path / "log")


def with_w(**spec: Any):
    def model_fn(inputs, mode):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        return mox.ModelSpec(**{name: make(w) for name, make in spec.items()})

    return model_fn


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


def test_compressor_spec_is_refused():
    with pytest.raises(ValueError, match="compressor_spec"):
        mox.ModelSpec(compressor_spec=3)


# --- losses, optimizers, scopes ---------------------------------------------------------------------------------------


def two_scopes(inputs, mode, **spec):
    with tf.variable_scope("generator"):
        g = tf.identity(tf.get_variable("g", shape=[], initializer=tf.zeros_initializer()))
    with tf.variable_scope("discriminator"):
        d = tf.identity(tf.get_variable("d", shape=[], initializer=tf.zeros_initializer()))
    return mox.ModelSpec(loss=[g, d], **spec)


@pytest.mark.parametrize("functions", [1, 3])
def test_losses_and_optimizers_of_different_number(functions):
    text = error_of(
        ValueError, model_fn=lambda inputs, mode: two_scopes(inputs, mode), optimizer_fn=[sgd()] * functions
    )
    assert holds(text, "2 losses", f"{functions} optimizer_fn", "one for every loss")


def test_var_scope_without_variables():
    def model_fn(inputs, mode):
        return two_scopes(inputs, mode, var_scopes=[["generator"], ["discriminatr"]])

    text = error_of(ValueError, model_fn=model_fn, optimizer_fn=[sgd(), sgd()])
    assert holds(text, "var_scopes", "'discriminatr'", "generator/g", "discriminator/d")


def test_var_scope_is_a_scope_and_not_the_start_of_a_name():
    def model_fn(inputs, mode):
        return two_scopes(inputs, mode, var_scopes=[["gen"], ["discriminator"]])

    assert holds(error_of(ValueError, model_fn=model_fn, optimizer_fn=[sgd(), sgd()]), "'gen'")


@pytest.mark.parametrize("scopes", [[["generator"]], ["generator", "discriminator"], [["generator"]] * 3])
def test_var_scopes_of_another_number(scopes):
    text = error_of(
        ValueError,
        model_fn=lambda inputs, mode: two_scopes(inputs, mode, var_scopes=scopes),
        optimizer_fn=[sgd(), sgd()],
    )
    assert holds(text, f"var_scopes={scopes!r}", "2 losses", "2 lists")


def test_var_scopes_of_another_type():
    text = error_of(TypeError, model_fn=with_w(loss=lambda w: w, var_scopes=lambda w: "w"))
    assert holds(text, "var_scopes='w'", "['w']")
    text = error_of(TypeError, model_fn=with_w(loss=lambda w: w, var_scopes=lambda w: [3]))
    assert holds(text, "var_scopes", "3", "names of variable scopes")


def test_loss_that_depends_on_no_variable():
    text = error_of(ValueError, model_fn=lambda inputs, mode: mox.ModelSpec(loss=tf.constant(1.0, name="stray")))
    assert holds(text, "stray", "no trainable variable")
    text = error_of(ValueError, model_fn=with_w(loss=lambda w: tf.constant(1.0, name="stray")))
    assert holds(text, "stray", "w")


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_wrong_loss_scale(value):
    mox.set_flag("loss_scale", value)
    assert holds(error_of(FlagError), f"--loss_scale={float(value)}", "above 0, or dynamic")


@pytest.mark.parametrize(
    ("flag", "value", "expected"),
    [("loss_scale", "much", "a number or dynamic"), ("loss_scale", "Dynamic", "a number or dynamic"),
     ("var_dtype", "fp64", "one of fp32, fp16"), ("use_fp16", "float16", "True or False")],
)  # fmt: skip
def test_wrong_values_of_precision_flags(flag, value, expected):
    with pytest.raises(FlagError, match=f"--{flag}='{value}': expected {expected}"):
        mox.set_flag(flag, value)


@pytest.mark.parametrize(("kind", "bound"), [("norm", None), (None, 1.0), ("value", 0.0), ("global_norm", -1.0)])
def test_wrong_gradient_clip(kind, bound):
    mox.set_flag("gradient_clip_type", kind)
    mox.set_flag("gradient_clip", bound)
    text = error_of(FlagError)
    assert holds(text, f"--gradient_clip_type={kind}", f"--gradient_clip={bound}", "above 0", "norm", "value")


def test_unknown_gradient_clip_type():
    with pytest.raises(FlagError, match="gradient_clip_type='l2'.*norm, global_norm, value"):
        mox.set_flag("gradient_clip_type", "l2")


@pytest.mark.parametrize("flag", ["trainable_include_patterns", "trainable_exclude_patterns"])
def test_pattern_that_is_no_regular_expression(flag):
    mox.set_flag(flag, "conv[")
    assert holds(error_of(FlagError), f"--{flag}", "'conv['", "not a regular expression")


@pytest.mark.parametrize(
    ("flag", "value"), [("trainable_include_patterns", "conv"), ("trainable_exclude_patterns", "w")]
)
def test_patterns_that_leave_nothing_to_train(flag, value):
    mox.set_flag(flag, value)
    assert holds(error_of(FlagError), f"--{flag}", "no variable to train", "w")


def test_optimizer_that_ignores_global_step():
    class Forgetful(tf.train.GradientDescentOptimizer):
        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            return super().apply_gradients(grads_and_vars, None, name)

    text = error_of(ValueError, optimizer_fn=lambda: Forgetful(0.1))
    assert holds(text, "global_step", "optimizer_fn", "apply_gradients")


def test_unknown_optimizer_name():
    with pytest.raises(ValueError) as caught:
        mox.get_optimizer_fn("momentun", 0.1)
    assert holds(str(caught.value), "name='momentun'", "adadelta", "sgd", "Did you mean 'momentum'?")


def test_unknown_optimizer_argument():
    with pytest.raises(TypeError) as caught:
        mox.get_optimizer_fn("adam", 0.1, momentum=0.9)
    assert holds(str(caught.value), "'adam'", "momentum", "beta1")


# --- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["EVAL", "PREDICT"])
def test_no_checkpoint_where_one_is_needed(mode, tmp_path):
    text = error_of(ValueError, mode, output_fn=print, model_fn=forbidden_model)
    assert holds(text, f"run_mode='{mode}'", "checkpoint", "checkpoint_path")
    text = error_of(ValueError, mode, output_fn=print, log_dir=tmp_path / "none")
    assert holds(text, str(tmp_path / "none"), "holds none", "checkpoint_path")


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
def test_checkpoint_path_without_a_checkpoint(mode, tmp_path):
    (tmp_path / "empty").mkdir()
    text = error_of(ValueError, mode, checkpoint_path=tmp_path / "empty")
    assert holds(text, "checkpoint_path", str(tmp_path / "empty"), "holds no checkpoint")
    text = error_of(ValueError, mode, checkpoint_path=tmp_path / "model.ckpt-7")
    assert holds(
        text,
        "checkpoint_path",
        "model.ckpt-7",
        "no such checkpoint",
        "directory of a training, or a checkpoint's prefix",
    )


def test_checkpoint_path_to_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("no checkpoint\n" * 100)
    text = error_of(ValueError, "EVAL", checkpoint_path=tmp_path / "notes.txt")
    assert holds(text, "checkpoint_path", "notes.txt", "not a readable checkpoint")


def shaped(rows: int):
    def model_fn(inputs, mode):
        w = tf.get_variable("net/w", shape=[rows, 2], initializer=tf.zeros_initializer())
        b = tf.get_variable("net/b", shape=[2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(w) + tf.reduce_sum(b)
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    return model_fn


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
@pytest.mark.parametrize("place", ["log_dir", "checkpoint_path"])
def test_shapes_that_differ(mode, place, tmp_path):
    trained(tmp_path, model_fn=shaped(3))
    text = error_of(ValueError, mode, model_fn=shaped(5), max_number_of_steps=9, **{place: tmp_path})
    assert holds(text, "net/w: [3, 2] in the checkpoint, [5, 2] in the model", "1 variables", "model.ckpt-3")
    assert "net/b" not in text
    assert ("--restart" if place == "log_dir" else "--checkpoint_exclude_patterns") in text


@pytest.mark.parametrize("flag", ["checkpoint_include_patterns", "checkpoint_exclude_patterns"])
def test_checkpoint_pattern_that_is_no_regular_expression(flag, log_dir):
    mox.set_flag(flag, "conv(")
    text = error_of(FlagError, checkpoint_path=log_dir)
    assert holds(text, f"--{flag}", "'conv('", "not a regular expression")


def more_variables(inputs, mode):
    a = tf.identity(tf.get_variable("a", shape=[], initializer=tf.ones_initializer()))
    spec = line_model(inputs, mode)
    return mox.ModelSpec(loss=spec.loss * a, log_info={"a": a})


@pytest.mark.parametrize(
    ("mode", "place", "remedy"),
    [
        ("TRAIN", "log_dir", "--restart"),
        ("EVAL", "log_dir", "differs"),
        ("EVAL", "checkpoint_path", "exclude_patterns"),
    ],
)
def test_checkpoint_that_lacks_variables(mode, place, remedy, log_dir):
    text = error_of(ValueError, mode, model_fn=more_variables, max_number_of_steps=9, **{place: log_dir})
    assert holds(text, str(log_dir), "lacks variables", ": a.", remedy)


def damage(prefix: str | None) -> None:
    path = Path(f"{prefix}.data-00000-of-00001")
    path.write_bytes(bytes(255 - byte for byte in path.read_bytes()))


def test_damaged_newest_checkpoint(tmp_path, caplog):
    trained(tmp_path, save_model_steps=2, max_number_of_steps=6)
    damage(str(tmp_path / "model.ckpt-6"))
    with caplog.at_level("INFO", logger="tensorflow"):
        result = run("EVAL", log_dir=tmp_path)
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-4")
    assert result.log_info["w"] == -4
    assert holds(caplog.text, "model.ckpt-6 is damaged", "falling back")


def test_all_checkpoints_damaged(log_dir):
    for step in (0, 3):
        damage(str(log_dir / f"model.ckpt-{step}"))
    for mode in ("TRAIN", "EVAL"):
        text = error_of(ValueError, mode, log_dir=log_dir)
        assert holds(text, "All 2 checkpoints", str(log_dir), "damaged", "--restart")


def test_wrong_keep_checkpoint_max(tmp_path):
    mox.set_flag("keep_checkpoint_max", 0)
    assert holds(error_of(FlagError, log_dir=tmp_path), "--keep_checkpoint_max=0", "from 1")


# --- a loss that is not finite ----------------------------------------------------------------------------------------


def failing_at(step: int, make_bad, **spec: Any):
    """The loss is bad from the batch that holds `step` on; the batch size is 1."""

    def model_fn(inputs, mode):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        bad = tf.cast(inputs[0][0] >= step, tf.float32)
        return mox.ModelSpec(loss=make_bad(w, bad), log_info={"w": w}, **spec)

    return model_fn


BAD_LOSSES = {
    "NaN": lambda w, bad: w + tf.where(bad > 0, float("nan"), 0.0),
    "infinite": lambda w, bad: w - tf.where(bad > 0, float("inf"), 0.0),
}


@pytest.mark.parametrize("kind", sorted(BAD_LOSSES))
@pytest.mark.parametrize("single_steps", [False, True])
def test_loss_not_finite_stops_and_names_the_step(kind, single_steps, tmp_path, caplog):
    class Quiet(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return None

    hooks = [Quiet()] if single_steps else None
    model_fn = failing_at(13, BAD_LOSSES[kind], hooks=hooks)
    settings = {"log_dir": tmp_path, "batch_size": 1, "max_number_of_steps": 40}
    text = error_of(NotFiniteError, model_fn=model_fn, save_model_steps=5, **settings)
    assert holds(text, "Step 13", "NaN or infinite", str(tmp_path / "model.ckpt-10"), "learning rate")
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-10")
    assert run("EVAL", **settings).log_info["w"] == -10


def test_loss_not_finite_without_log_dir():
    text = error_of(NotFiniteError, model_fn=failing_at(2, BAD_LOSSES["NaN"]), batch_size=1)
    assert holds(text, "Step 2", "No checkpoint was written")


def test_loss_not_finite_in_the_first_step(tmp_path):
    text = error_of(NotFiniteError, model_fn=failing_at(0, BAD_LOSSES["NaN"]), batch_size=1, log_dir=tmp_path)
    assert holds(text, "Step 0", str(tmp_path / "model.ckpt-0"))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-0")


def test_one_of_several_losses_not_finite():
    def model_fn(inputs, mode):
        spec = two_scopes(inputs, mode, var_scopes=[["generator"], ["discriminator"]])
        g, d = spec.loss
        spec.loss = [g, d + tf.where(inputs[0][0] >= 2, float("nan"), 0.0)]
        return spec

    assert holds(error_of(NotFiniteError, model_fn=model_fn, optimizer_fn=[sgd()] * 2, batch_size=1), "Step 2")


def test_variables_not_finite_are_not_saved(tmp_path):
    """The loss itself is finite, its gradient is not: sqrt has an infinite slope at 0."""

    def model_fn(inputs, mode):
        w = tf.get_variable("net/w", shape=[2], initializer=tf.zeros_initializer())
        return mox.ModelSpec(loss=tf.reduce_sum(tf.sqrt(w)))

    text = error_of(NotFiniteError, model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1)
    assert holds(text, "Step 0", "net/w", str(tmp_path / "model.ckpt-0"))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-0")


# --- several devices and clusters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("warmup_steps", 10),
        ("var_space_starter", 3),
        ("var_mix_offset", 3),
        ("variable_update", "auto"),
        ("variable_update", "distributed_replicated_mix"),
    ],
)
def test_what_is_not_there_yet_is_refused(flag, value):
    mox.set_flag(flag, value)
    text = error_of(FlagNotAvailableError, model_fn=forbidden_model)
    assert holds(text, f"--{flag}={value}", "version")


@pytest.mark.parametrize("update", ["collective", "distributed_replicated", "distributed_replicated_dgc"])
def test_a_clusters_way_of_updating_needs_one(update):
    mox.set_flag("variable_update", update)
    text = error_of(FlagError, model_fn=forbidden_model)
    assert holds(text, f"--variable_update={update}", "cluster", "--worker_hosts")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"job_name": "ps"}, ["--job_name=ps", "--ps_hosts"]),
        ({"ps_hosts": "a:1", "job_name": "worker"}, ["--ps_hosts=a:1", "--worker_hosts"]),
        ({"worker_hosts": "a:1,b:2", "job_name": "worker", "task_index": 2}, ["--task_index=2", "--worker_hosts"]),
        ({"worker_hosts": "a:1,a:1", "job_name": "worker"}, ["--worker_hosts", "a:1"]),
    ],
)
def test_a_cluster_that_cannot_be_is_an_error_at_the_start(flags, words):
    for name, value in flags.items():
        mox.set_flag(name, value)
    assert holds(error_of(RoleError, model_fn=forbidden_model), *words)


@pytest.mark.parametrize("value", [0, -1])
def test_wrong_num_gpus(value):
    mox.set_flag("num_gpus", value)
    assert holds(error_of(FlagError, model_fn=forbidden_model), f"--num_gpus={value}", "expected 1")


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("num_gpus", 1),
        ("job_name", "worker"),
        ("worker_hosts", "a:1"),
        ("task_index", 0),
        ("variable_update", "parameter_server"),
        ("warmup_steps", 0),
    ],
)
def test_flags_that_ask_for_one_process_are_taken(flag, value):
    mox.set_flag(flag, value)
    assert run(max_number_of_steps=1).global_step == 1


# --- a run that fails leaves nothing behind ---------------------------------------------------------------------------


def test_a_failed_run_changes_nothing(log_dir, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    with pytest.raises(TypeError):
        run(log_dir=log_dir, model_fn=lambda inputs, mode: None, max_number_of_steps=9)
    assert sorted(path.name for path in copy.iterdir()) == sorted(path.name for path in log_dir.iterdir())
    assert (copy / "checkpoint").read_text() == (log_dir / "checkpoint").read_text()
    assert run(log_dir=log_dir, max_number_of_steps=5).global_step == 5
