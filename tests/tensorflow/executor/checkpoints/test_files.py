"""The JSON of a checkpoint, missing or damaged; the checkpoint file, which names the valid checkpoints."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from digits_model import evaluate, prefixes, train

from moxing.tensorflow.executor.checkpoints.files import (
    adopt_moved,
    mark_valid,
    marker_text,
    read_position,
    remove_checkpoint,
    unusable,
    update_hook_state,
    valid_checkpoints,
    write_position,
)
from moxing.tensorflow.executor.checkpoints.position import START, Position


def test_missing_checkpoint_file_is_made_up_for_by_what_is_on_the_disk(tmp_path):
    train(tmp_path, 12, save_model_steps=5)
    (tmp_path / "checkpoint").unlink()
    assert train(tmp_path, 20).global_step == 20
    assert prefixes(tmp_path) == [0, 5, 10, 12, 20]


def test_mark_valid_replaces_the_list(tmp_path):
    prefixes_of = [str(tmp_path / f"model.ckpt-{step}") for step in (1, 2, 3)]
    mark_valid(str(tmp_path), prefixes_of[:2])
    assert valid_checkpoints(str(tmp_path)) == prefixes_of[1::-1]
    mark_valid(str(tmp_path), prefixes_of[1:])
    assert valid_checkpoints(str(tmp_path)) == prefixes_of[:0:-1]


def test_names_move_with_the_directory(tmp_path):
    (tmp_path / "a").mkdir()
    mark_valid(str(tmp_path / "a"), [str(tmp_path / "a" / "model.ckpt-1")])
    (tmp_path / "a").rename(tmp_path / "b")
    assert valid_checkpoints(str(tmp_path / "b")) == [str(tmp_path / "b" / "model.ckpt-1")]


@pytest.mark.parametrize("old", ["/was/here/model.ckpt-1", "s3://bucket/log/model.ckpt-1", "{tmp}/old/model.ckpt-1"])
def test_files_beside_the_checkpoint_file_win(tmp_path, old, caplog):
    """TensorFlow writes absolute paths. What is at the old place may be another training, and is not ours to remove."""
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.ckpt-1.index").touch()
    new = str(tmp_path / "new")
    (tmp_path / "new" / "checkpoint").write_text(marker_text([old.format(tmp=tmp_path)]))
    assert valid_checkpoints(new) == [f"{new}/model.ckpt-1"]
    adopt_moved(new)
    assert tf.train.latest_checkpoint(new) == f"{new}/model.ckpt-1"
    assert "which is elsewhere" in caplog.text


def test_a_checkpoint_elsewhere_is_said(tmp_path, caplog):
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "old" / "model.ckpt-1.index").touch()
    (tmp_path / "new" / "checkpoint").write_text(marker_text([f"{tmp_path}/old/model.ckpt-1"]))
    adopt_moved(str(tmp_path / "new"))
    assert "names a checkpoint outside of the directory" in caplog.text
    text = unusable("log_dir", f"{tmp_path}/new", valid_checkpoints(f"{tmp_path}/new"))
    assert f"names {tmp_path}/old/model.ckpt-1, and there is no {tmp_path}/new/model.ckpt-1.index" in text


def test_a_checkpoint_below_the_directory(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "model.ckpt-1.index").touch()
    (tmp_path / "checkpoint").write_text(marker_text(["sub/model.ckpt-1"]))
    assert valid_checkpoints(str(tmp_path)) == [str(tmp_path / "sub" / "model.ckpt-1")]


def test_a_directory_without_checkpoints(tmp_path):
    assert valid_checkpoints(str(tmp_path)) == []
    assert valid_checkpoints(str(tmp_path / "missing")) == []


def test_remove_takes_the_files_of_one_checkpoint(tmp_path):
    for name in ("model.ckpt-1.index", "model.ckpt-1.moxing.json", "model.ckpt-10.index"):
        (tmp_path / name).touch()
    remove_checkpoint(str(tmp_path / "model.ckpt-1"))
    assert [path.name for path in tmp_path.iterdir()] == ["model.ckpt-10.index"]


@pytest.mark.slow
def test_damaged_position_starts_the_data_over_and_says_so(tmp_path, caplog):
    train(tmp_path, 5)
    (tmp_path / "model.ckpt-5.moxing.json").write_text("{")
    assert train(tmp_path, 8).global_step == 8
    assert "Cannot read" in caplog.text and "reading the data from the start" in caplog.text


@pytest.mark.parametrize(
    "text",
    ["[]", "7", '"x"', '{"elements": -5, "seed": 1}', '{"elements": 1e400, "seed": 1}', '{"elements": 5, "seed": "x"}']
    + ['{"elements": 5, "seed": 1, "samples": [-1]}', '{"elements": 5, "seed": 1, "hooks": 3}', "\x00"],
)
def test_nonsense_in_a_position(tmp_path, caplog, text):
    (tmp_path / "model.ckpt-5.moxing.json").write_text(text)
    assert read_position(str(tmp_path / "model.ckpt-5")) == START
    assert "Cannot read" in caplog.text


def test_a_position_of_a_newer_version(tmp_path):
    (tmp_path / "model.ckpt-5.moxing.json").write_text('{"format": 2, "place": "elsewhere"}')
    with pytest.raises(ValueError, match=r"model\.ckpt-5\.moxing\.json has the format 2.*newer version"):
        read_position(str(tmp_path / "model.ckpt-5"))


@pytest.mark.slow
def test_the_place_in_the_data_is_only_missed_by_a_run_that_goes_on(tmp_path, caplog):
    train(tmp_path, 5)
    (tmp_path / "model.ckpt-5.moxing.json").unlink()
    evaluate(tmp_path)
    train(tmp_path / "other", 6, checkpoint_path=str(tmp_path))
    assert "start of the data" not in caplog.text
    train(tmp_path, 6)
    assert "model.ckpt-5.moxing.json is missing; reading the data from the start." in caplog.text


def test_a_position_is_read_back(tmp_path):
    prefix = str(tmp_path / "model.ckpt-1")
    position = Position(elements=12, seed=3, samples=(4, 5), hooks={"a": {"best": 1.5}})
    write_position(prefix, position)
    assert read_position(prefix) == position
    assert read_position(prefix).hooks == {"a": {"best": 1.5}}
    update_hook_state(prefix, "b", {"restores": 1})
    assert read_position(prefix).hooks == {"a": {"best": 1.5}, "b": {"restores": 1}}


def test_no_position_is_the_start(tmp_path):
    assert read_position(str(tmp_path / "model.ckpt-1")) == START
    update_hook_state(str(tmp_path / "model.ckpt-1"), "a", {})
    assert list(tmp_path.iterdir()) == []
