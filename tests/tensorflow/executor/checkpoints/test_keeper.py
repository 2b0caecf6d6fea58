"""Saving checkpoints: when, how many, what a crash leaves behind."""

from __future__ import annotations

import errno
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds
from digits_model import input_fn, model_fn, prefixes, train, weights

import moxing.tensorflow as mox
from moxing.framework.flags import FlagError
from moxing.tensorflow.executor.checkpoints.files import read_position, valid_checkpoints
from moxing.tensorflow.executor.checkpoints.keeper import Keeper
from moxing.tensorflow.executor.checkpoints.position import Position


def test_wrong_keep_checkpoint_max(tmp_path):
    mox.set_flag("keep_checkpoint_max", 0)
    assert holds(error_of(FlagError, log_dir=tmp_path), "--keep_checkpoint_max=0", "from 1")


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


@pytest.fixture
def session():
    """A session with one variable."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", initializer=1.0)
        session.run(tf.global_variables_initializer())
        yield session


def test_states_of_hooks_are_saved_and_updated(session, tmp_path):
    keeper = Keeper(str(tmp_path), seed=7)
    prefix = keeper.save(session, 1, Position(elements=32, hooks={"a": {"n": 1}, "b": {"n": 2}}))
    assert keeper.last == prefix
    assert read_position(prefix) == Position(elements=32, seed=7)
    assert read_position(prefix).hooks == {"a": {"n": 1}, "b": {"n": 2}}
    keeper.update_state("b", {"n": 3})
    assert read_position(prefix).hooks == {"a": {"n": 1}, "b": {"n": 3}}


def test_restore_loads_the_checkpoint_that_a_run_resumed_from(session, tmp_path):
    first = Keeper(str(tmp_path), seed=None)
    prefix = first.save(session, 1)
    (w,) = tf.global_variables()
    session.run(w.assign(5.0))
    second = Keeper(str(tmp_path), seed=None)
    assert second.last is None
    second.resume_from(prefix)
    second.restore(session)
    assert session.run(w) == 1.0


def test_a_full_disk(session, tmp_path, monkeypatch):
    keeper = Keeper(str(tmp_path), seed=None)
    good = keeper.save(session, 1)

    def fill(session, base, global_step, **kwargs):
        (tmp_path / f"model.ckpt-{global_step}.data-00000-of-00001").touch()
        raise tf.errors.ResourceExhaustedError(None, None, f"{base}; No space left on device")

    monkeypatch.setattr(keeper._saver, "save", fill)
    with pytest.raises(OSError, match=r"checkpoint of step 2 could not be written, the disk is full") as caught:
        keeper.save(session, 2)
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(tmp_path)
    assert f"the last good checkpoint is {good}" in str(caught.value)
    assert not list(tmp_path.glob("model.ckpt-2*"))
    assert valid_checkpoints(str(tmp_path)) == [good]


def test_a_directory_that_was_removed(session, tmp_path, caplog):
    keeper = Keeper(str(tmp_path / "log"), seed=None)
    keeper.save(session, 1)
    shutil.rmtree(tmp_path / "log")
    assert keeper.save(session, 2) == str(tmp_path / "log" / "model.ckpt-2")
    assert "was removed during the training; creating it again" in caplog.text
    assert valid_checkpoints(str(tmp_path / "log")) == [str(tmp_path / "log" / "model.ckpt-2")]


def test_max_to_keep(session, tmp_path):
    keeper = Keeper(str(tmp_path), seed=None, max_to_keep=2)
    for step in (1, 2, 3):
        keeper.save(session, step)
    assert valid_checkpoints(str(tmp_path)) == [str(tmp_path / f"model.ckpt-{step}") for step in (3, 2)]
    assert not list(tmp_path.glob("model.ckpt-1.*"))
