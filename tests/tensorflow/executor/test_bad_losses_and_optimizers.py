"""Wrong losses, scopes, optimizers and flags about them."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds, two_scopes, with_w
from line_problem import sgd

import moxing.tensorflow as mox
from moxing.framework.flags import FlagError


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
