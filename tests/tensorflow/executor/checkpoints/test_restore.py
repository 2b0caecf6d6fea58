"""Which variables a run restores: resume, warm start, patterns, errors."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds, trained
from digits_model import evaluate, prefixes, train, weights
from line_problem import line_model

import moxing.tensorflow as mox
from moxing.framework.flags import FlagError


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


def test_an_evaluation_does_not_miss_the_step(tmp_path, caplog):
    train(tmp_path / "trained", 2)
    values = weights(tmp_path / "trained" / "model.ckpt-2")
    with tf.Graph().as_default(), tf.Session() as session:
        kept = [tf.get_variable(name, initializer=value) for name, value in values.items() if name != "global_step"]
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver(kept).save(session, str(tmp_path / "other_tool.ckpt"), write_state=False)
    evaluate(prefix)
    assert "4 variables restored, 0 skipped by patterns, 0 missing there" in caplog.text


@pytest.mark.slow
def test_warm_start_with_patterns(tmp_path, caplog):
    train(tmp_path / "first", 5)
    trained = weights(tmp_path / "first" / "model.ckpt-5")
    mox.set_flag("checkpoint_exclude_patterns", "global_step,logits,Adam,_power")
    train(tmp_path / "second", 1, checkpoint_path=str(tmp_path / "first"), optimizer_fn=mox.get_optimizer_fn("sgd", 0))
    started = weights(tmp_path / "second" / "model.ckpt-0")
    np.testing.assert_array_equal(started["hidden/kernel"], trained["hidden/kernel"])
    assert not np.array_equal(started["logits/kernel"], trained["logits/kernel"])
    assert started["global_step"] == 0
    assert "2 variables restored, 3 skipped by patterns, 0 missing there" in caplog.text


def test_warm_start_takes_the_step_too_and_lacks_may_be(tmp_path, caplog):
    train(tmp_path / "first", 5, optimizer_fn=mox.get_optimizer_fn("sgd", 0.1))
    result = train(tmp_path / "second", 7, checkpoint_path=str(tmp_path / "first" / "model.ckpt-5"))
    assert result.global_step == 7
    assert prefixes(tmp_path / "second") == [5, 7]
    assert "5 variables restored, 0 skipped by patterns, 10 missing there" in caplog.text


def test_patterns_that_leave_an_evaluation_untrained_are_told(tmp_path, caplog):
    train(tmp_path, 2)
    mox.set_flag("checkpoint_exclude_patterns", "logits,logitz")
    evaluate(tmp_path)
    assert "leave 2 variables at their initial values, untrained: logits/kernel, logits/bias." in caplog.text
    assert "The checkpoint pattern 'logitz' matches no variable of the model." in caplog.text


def test_include_patterns(tmp_path):
    train(tmp_path / "first", 5)
    mox.set_flag("checkpoint_include_patterns", "^hidden/")
    train(tmp_path / "second", 1, checkpoint_path=str(tmp_path / "first"))
    assert weights(tmp_path / "second" / "model.ckpt-0")["global_step"] == 0


@pytest.mark.slow
def test_v1_format_of_2016(tmp_path):
    """The single-file format that published checkpoints came in."""
    train(tmp_path / "first", 5)
    trained = weights(tmp_path / "first" / "model.ckpt-5")
    old = tmp_path / "old.ckpt"
    with tf.Graph().as_default(), tf.Session() as session:
        for name in ("hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"):
            tf.get_variable(name, initializer=tf.constant(trained[name]))
        session.run(tf.global_variables_initializer())
        tf.train.Saver(write_version=tf.train.SaverDef.V1).save(session, str(old), write_meta_graph=False)
    assert old.is_file()
    expected = evaluate(tmp_path / "first").log_info["loss"]
    assert evaluate(old).log_info["loss"] == pytest.approx(expected, abs=1e-6)
    train(tmp_path / "second", 1, checkpoint_path=str(old))
    np.testing.assert_array_equal(
        weights(tmp_path / "second" / "model.ckpt-0")["hidden/kernel"], trained["hidden/kernel"]
    )


@pytest.mark.realdata
def test_real_imagenet_checkpoint_of_2016(real_data, tmp_path):
    path = real_data / "checkpoints" / "resnet_v1_50.ckpt"

    def model(inputs, mode):
        kernel = tf.get_variable("resnet_v1_50/conv1/weights", [7, 7, 3, 64])
        return mox.ModelSpec(log_info={"sum": tf.reduce_sum(kernel)})

    result = mox.run(
        input_fn=lambda mode: tf.zeros([1]),
        model_fn=model,
        run_mode="EVAL",
        checkpoint_path=str(path),
        max_number_of_steps=1,
    )
    expected = tf.train.NewCheckpointReader(str(path)).get_tensor("resnet_v1_50/conv1/weights").sum()
    assert result.log_info["sum"] == pytest.approx(float(expected), rel=1e-4)
