"""Checkpoints: written when, kept how many, resumed from bit for bit, and what happens to damaged ones."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from digits_model import evaluate, input_fn, model_fn, train, weights

import moxing.tensorflow as mox


def prefixes(log_dir):
    return sorted(int(path.stem.split("-")[1]) for path in log_dir.glob("model.ckpt-*.index"))


def assert_same_weights(left, right):
    left, right = weights(left), weights(right)
    assert left.keys() == right.keys()
    for name, value in left.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)


def test_written_at_the_start_every_n_steps_and_at_the_end(tmp_path):
    result = train(tmp_path, 25, save_model_steps=10)
    assert prefixes(tmp_path) == [0, 10, 20, 25]
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-25")
    assert result.global_step == 25


def test_only_the_newest_are_kept(tmp_path):
    mox.set_flag("keep_checkpoint_max", 2)
    train(tmp_path, 25, save_model_steps=5)
    assert prefixes(tmp_path) == [20, 25]
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "model.ckpt-20.moxing.json",
        "model.ckpt-25.moxing.json",
    ]
    train(tmp_path, 30)
    assert prefixes(tmp_path) == [25, 30]


def test_by_the_clock(tmp_path):
    train(tmp_path, 40, save_model_secs=1e-6, log_every_n_steps=10)
    assert {1, 11, 21, 31, 40} <= set(prefixes(tmp_path)) | {1}
    assert len(prefixes(tmp_path)) == 5


def test_any_saver_reads_them(tmp_path):
    train(tmp_path, 3)
    names = set(weights(tmp_path / "model.ckpt-3"))
    assert {"global_step", "hidden/kernel", "hidden/kernel/Adam", "logits/bias"} <= names
    assert not [name for name in names if "moxing" in name]
    with tf.Graph().as_default(), tf.Session() as session:
        kernel = tf.get_variable("hidden/kernel", [20, 16])
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(str(tmp_path)))
        np.testing.assert_array_equal(session.run(kernel), weights(tmp_path / "model.ckpt-3")["hidden/kernel"])


def test_interrupted_at_random_steps_equals_never_interrupted(tmp_path):
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    train(straight, 1)
    shutil.copytree(straight, broken)
    train(straight, 80)
    stops = sorted(random.Random(1).sample(range(2, 80), 3))
    for stop in [*stops, 80]:
        train(broken, stop)
    assert_same_weights(straight / "model.ckpt-80", broken / "model.ckpt-80")


def test_shuffled_order_goes_on_where_it_stopped(tmp_path):
    """Without a loop over the data twice: every sample of the epoch is seen once, over two runs."""
    seen = []

    def numbers(mode):
        dataset = tf.data.Dataset.range(64).shuffle(64)
        return tf.data.make_one_shot_iterator(dataset).get_next()

    def model(inputs, mode):
        weight = tf.get_variable("w", shape=[])
        loss = weight * tf.reduce_mean(tf.cast(inputs[0], tf.float32))
        return mox.ModelSpec(loss=loss, output_info={"numbers": inputs[0]})

    for steps in (3, 10**6):
        mox.run(
            input_fn=numbers,
            model_fn=model,
            optimizer_fn=mox.get_optimizer_fn("sgd", 0.0),
            output_fn=lambda outputs: seen.extend(outputs[0]["numbers"]),
            output_every_n_steps=1,
            run_mode="TRAIN",
            batch_size=8,
            log_dir=str(tmp_path),
            max_number_of_steps=steps,
        )
    assert sorted(seen) == list(range(64))
    assert seen != sorted(seen)


def test_after_the_end_of_data_the_next_run_starts_over(tmp_path):
    def short(mode):
        return tf.data.make_one_shot_iterator(tf.data.Dataset.range(20)).get_next()

    def model(inputs, mode):
        weight = tf.get_variable("w", shape=[])
        return mox.ModelSpec(loss=weight * tf.reduce_mean(tf.cast(inputs[0], tf.float32)))

    def run():
        return mox.run(
            input_fn=short,
            model_fn=model,
            optimizer_fn=mox.get_optimizer_fn("sgd", 0.0),
            run_mode="TRAIN",
            batch_size=8,
            log_dir=str(tmp_path),
            max_number_of_steps=10**9,
        )

    first, second = run(), run()
    assert (first.global_step, first.samples) == (3, 20)
    assert (second.global_step, second.samples) == (6, 20)
    assert json.loads((tmp_path / "model.ckpt-6.moxing.json").read_text())["elements"] == 0


def damage(path, how):
    data = path.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :])
    else:
        path.unlink()


@pytest.mark.parametrize("how", ["truncated", "flipped", "missing"])
@pytest.mark.parametrize("suffix", [".data-00000-of-00001", ".index"])
def test_damaged_newest_falls_back_to_the_one_before(tmp_path, caplog, how, suffix):
    train(tmp_path, 20, save_model_steps=10)
    damage(tmp_path / f"model.ckpt-20{suffix}", how)
    result = train(tmp_path, 30)
    assert result.global_step == 30
    assert f"The checkpoint {tmp_path / 'model.ckpt-20'} is damaged" in caplog.text
    assert f"Restoring parameters from {tmp_path / 'model.ckpt-10'}" in caplog.text


def test_all_damaged_is_an_error(tmp_path):
    train(tmp_path, 5)
    for path in tmp_path.glob("*.index"):
        damage(path, "truncated")
    with pytest.raises(ValueError, match="All 2 checkpoints in .* are damaged.*--restart"):
        train(tmp_path, 10)


def test_missing_checkpoint_file_is_made_up_for_by_what_is_on_the_disk(tmp_path):
    train(tmp_path, 12, save_model_steps=5)
    (tmp_path / "checkpoint").unlink()
    assert train(tmp_path, 20).global_step == 20
    assert prefixes(tmp_path) == [0, 5, 10, 12, 20]


def test_damaged_position_starts_the_data_over_and_says_so(tmp_path, caplog):
    train(tmp_path, 5)
    (tmp_path / "model.ckpt-5.moxing.json").write_text("{")
    assert train(tmp_path, 8).global_step == 8
    assert "cannot be read" in caplog.text and "start of the data" in caplog.text


def test_the_place_in_the_data_is_only_missed_by_a_run_that_goes_on(tmp_path, caplog):
    train(tmp_path, 5)
    (tmp_path / "model.ckpt-5.moxing.json").unlink()
    evaluate(tmp_path)
    train(tmp_path / "other", 6, checkpoint_path=str(tmp_path))
    assert "start of the data" not in caplog.text
    train(tmp_path, 6)
    assert "model.ckpt-5.moxing.json is missing: the run goes on from the start of the data." in caplog.text


def test_an_evaluation_does_not_miss_the_step(tmp_path, caplog):
    train(tmp_path / "trained", 2)
    values = weights(tmp_path / "trained" / "model.ckpt-2")
    with tf.Graph().as_default(), tf.Session() as session:
        kept = [tf.get_variable(name, initializer=value) for name, value in values.items() if name != "global_step"]
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver(kept).save(session, str(tmp_path / "other_tool.ckpt"), write_state=False)
    evaluate(prefix)
    assert "4 variables restored, 0 skipped by patterns, 0 missing there" in caplog.text


def test_restart_moves_the_old_ones_aside(tmp_path):
    train(tmp_path, 5)
    mox.set_flag("restart", True)
    assert train(tmp_path, 3).global_step == 3
    assert (tmp_path / "before_restart_1" / "model.ckpt-5.index").exists()
    # What this process trained since then is not set aside again.
    assert train(tmp_path, 4).samples == 16
    assert not (tmp_path / "before_restart_2").exists()


def test_log_dir_wins_over_checkpoint_path(tmp_path, caplog):
    train(tmp_path / "a", 5)
    train(tmp_path / "b", 7)
    result = train(tmp_path / "a", 9, checkpoint_path=str(tmp_path / "b"))
    assert result.global_step == 9
    assert f"Ignoring --checkpoint_path because a checkpoint already exists in {tmp_path / 'a'}" in caplog.text


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


def test_without_log_dir_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = train(None, 5)
    assert result.checkpoint_path is None
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_no_checkpoint(tmp_path):
    """What counts is named in the `checkpoint` file; a newer one that was never committed is not used."""
    train(tmp_path, 10, save_model_steps=5)
    state = (tmp_path / "checkpoint").read_text().replace('all_model_checkpoint_paths: "model.ckpt-10"\n', "")
    (tmp_path / "checkpoint").write_text(state.replace('h: "model.ckpt-10"', 'h: "model.ckpt-5"'))
    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        run_mode="EVAL",
        batch_size=16,
        log_dir=str(tmp_path),
        max_number_of_steps=1,
    )
    assert result.global_step == 5
