"""Gradient norms in whole runs, read back from the event file."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from events import scalars
from hook_runs import train
from line_problem import run, sgd

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks.gradient_norm import global_norm


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


def test_global_norm_of_half_precision_does_not_overflow():
    with tf.Graph().as_default(), tf.Session() as session:
        gradient = tf.constant([3e4, 4e4], tf.float16)
        assert session.run(global_norm([[(gradient, None)]])) == pytest.approx(5e4, rel=1e-3)
