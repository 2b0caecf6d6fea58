"""The JSON of a checkpoint, missing or damaged; the checkpoint file, which names the valid checkpoints."""

from __future__ import annotations

import pytest
from digits_model import evaluate, prefixes, train

from moxing.tensorflow.executor.checkpoints.files import (
    mark_valid,
    read_position,
    remove_checkpoint,
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
