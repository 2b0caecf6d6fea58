"""Runs with NaN or infinite values that stop or go back to a checkpoint."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from events import scalars
from hook_runs import Looks, bad_at, nan_loss, saved, saved_steps, train
from line_problem import sgd

import moxing.tensorflow as mox
from moxing.tensorflow.executor import NotFiniteError


@pytest.mark.parametrize("single", [False, True], ids=["loop", "single steps"])
def test_a_named_tensor_ends_the_run(single, tmp_path):
    def hooks(batch, w):
        guard = mox.NanGuardHook({"fine": w, "logits": tf.stack([w, bad_at(6)(batch)])})
        return [guard, Looks()] if single else [guard]

    with pytest.raises(NotFiniteError, match=r"Step 6: logits is NaN or infinite\. The last good .*model\.ckpt-4"):
        train(hooks, tmp_path, steps=100, save_model_steps=4, log_every_n_steps=0)
    assert saved_steps(tmp_path)[-1] == 4


def test_a_list_and_the_tower_of_a_tensor():
    def hooks(batch, w):
        return [mox.NanGuardHook([tf.identity(bad_at(7)(batch), name="values")])]

    mox.set_flag("num_gpus", 2)
    # Samples 6 and 7 are those of the fourth step: one for each tower.
    with pytest.raises(NotFiniteError, match=r"Step 3: .*values.*:0 of tower 1 is NaN or infinite"):
        train(hooks, steps=100)


def test_back_to_the_last_checkpoint(tmp_path, caplog):
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", factor=0.5)]  # noqa: E731
    result = train(
        hooks, tmp_path, loss=nan_loss(7, 12), optimizer_fn=sgd(1.0), save_model_steps=4, save_summary_steps=1
    )
    # Sample 7 is the step 7: back to 4, where w is -4. Samples 8 to 11 are the steps 4 to 7, at rate 0.5: -6 at 8, the
    # next checkpoint. Sample 12 is the step 8: back to 8. Then two steps at rate 0.25.
    assert result.global_step == 10
    assert saved(tmp_path, 8) == -6.0
    assert saved(tmp_path, 10) == -6.5
    # TensorBoard shows the last value of a step.
    assert scalars(tmp_path)["learning_rate"] == {
        **dict.fromkeys(range(4), 1.0), **dict.fromkeys(range(4, 8), 0.5), 8: 0.25, 9: 0.25,
    }  # fmt: skip
    said = [record.getMessage() for record in caplog.records if "NanGuardHook restores" in record.getMessage()]
    assert "Step 7" in said[0] and "lower the learning rate" not in said[0]
    assert "model.ckpt-4 (1 of 3)" in said[0]
    assert "model.ckpt-8 (2 of 3)" in said[1]
    assert "NanGuardHook restored 2 times: the learning rate is now 0.25 times that of the optimizer." in caplog.text
    # A resumed run knows both.
    state = json.loads((tmp_path / "model.ckpt-10.moxing.json").read_text())["hooks"]
    assert state == {"NanGuardHook": {"restores": 2}}
    caplog.clear()
    train(hooks, tmp_path, steps=12, save_summary_steps=1)
    assert saved(tmp_path, 12) == -7.0
    assert "the learning rate is now 0.25 times" in caplog.text


@pytest.mark.parametrize("update", ["parameter_server", "replicated"])
def test_two_towers_go_back(update, tmp_path):
    mox.set_flag("num_gpus", 2)
    mox.set_flag("variable_update", update)
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", factor=0.5)]  # noqa: E731
    train(hooks, tmp_path, steps=6, loss=nan_loss(11), save_model_steps=4)
    # In the step 5 of samples 10 and 11 the loss of the second tower is infinite: two steps at rate 0.5 instead.
    assert saved(tmp_path, 6) == -5.0


def test_variables_that_are_not_finite_go_back(tmp_path):
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", factor=1)]  # noqa: E731
    clean = lambda batch, w: []  # noqa: E731
    with pytest.raises(NotFiniteError, match="variables became NaN"):
        train(clean, tmp_path / "a", loss=lambda batch, w: w + tf.sqrt(w * 0.0), save_model_steps=1)

    def at_five(batch, w):
        # The value of the root is 0, its gradient is not a number.
        return tf.cond(tf.equal(batch[0], 5.0), lambda: w + tf.sqrt(w * 0.0), lambda: w)

    train(hooks, tmp_path / "b", loss=at_five, save_model_steps=1)
    assert saved(tmp_path / "b", 10) == -10.0


def test_not_for_ever(tmp_path, caplog):
    hooks = lambda batch, w: [mox.NanGuardHook(action="restore", max_restores=2)]  # noqa: E731
    with pytest.raises(NotFiniteError, match="the loss is NaN or infinite"):
        train(hooks, tmp_path, loss=lambda batch, w: w + np.inf)
    assert caplog.text.count("NanGuardHook restores") == 2
    # No checkpoint came after them, and the next run knows of them all the same.
    with pytest.raises(NotFiniteError, match="the loss is NaN or infinite"):
        train(hooks, tmp_path, loss=lambda batch, w: w + np.inf)
    assert caplog.text.count("NanGuardHook restores") == 2
    with pytest.raises(ValueError, match=r"action='restore'\) needs mox.run\(log_dir"):
        train(hooks)
    twice = lambda batch, w: [mox.NanGuardHook(), mox.NanGuardHook()]  # noqa: E731
    with pytest.raises(ValueError, match="expected one mox.NanGuardHook|several"):
        train(twice)
