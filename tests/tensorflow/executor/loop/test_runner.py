"""A run that ends because of a loss that is NaN or infinite."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds, two_scopes
from line_problem import run, sgd

import moxing.tensorflow as mox
from moxing.tensorflow.executor import NotFiniteError


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


def test_a_label_outside_of_the_classes():
    def model_fn(inputs, mode):
        logits = tf.get_variable("w", [5]) + tf.zeros([2, 5])
        return mox.ModelSpec(loss=tf.losses.sparse_softmax_cross_entropy(inputs[0], logits))

    text = error_of(ValueError, model_fn=model_fn, max_number_of_steps=10)
    assert "has 5 classes: expected labels from 0 to 4" in text
