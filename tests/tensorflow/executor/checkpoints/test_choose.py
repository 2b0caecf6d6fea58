"""Which checkpoint a run starts from; damaged and missing ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_runs import error_of, forbidden_model, holds, trained
from digits_model import train
from line_problem import run


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


def damage_checkpoint(prefix: str | None) -> None:
    path = Path(f"{prefix}.data-00000-of-00001")
    path.write_bytes(bytes(255 - byte for byte in path.read_bytes()))


def test_damaged_newest_checkpoint(tmp_path, caplog):
    trained(tmp_path, save_model_steps=2, max_number_of_steps=6)
    damage_checkpoint(str(tmp_path / "model.ckpt-6"))
    with caplog.at_level("INFO", logger="tensorflow"):
        result = run("EVAL", log_dir=tmp_path)
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-4")
    assert result.log_info["w"] == -4
    assert holds(caplog.text, "model.ckpt-6 is damaged", "falling back")


def test_all_checkpoints_damaged(log_dir):
    for step in (0, 3):
        damage_checkpoint(str(log_dir / f"model.ckpt-{step}"))
    for mode in ("TRAIN", "EVAL"):
        text = error_of(ValueError, mode, log_dir=log_dir)
        assert holds(text, "All 2 checkpoints", str(log_dir), "damaged", "--restart")


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
    with pytest.raises(ValueError, match="All 2 checkpoints in log_dir=.* are damaged.*--restart"):
        train(tmp_path, 10)


def test_a_moved_log_dir(tmp_path):
    """The marker names the old place, where a run with other weights has been since."""
    trained(tmp_path / "new", max_number_of_steps=6)
    trained(tmp_path / "old", max_number_of_steps=3)
    marker = tmp_path / "new" / "checkpoint"
    marker.write_text(f'model_checkpoint_path: "{tmp_path}/old/model.ckpt-6"')
    assert run("EVAL", log_dir=tmp_path / "new").checkpoint_path == str(tmp_path / "new" / "model.ckpt-6")
    marker.write_text(f'model_checkpoint_path: "{tmp_path}/old/model.ckpt-3"')
    text = error_of(ValueError, "TRAIN", log_dir=tmp_path / "new")
    assert holds(text, "log_dir", f"names {tmp_path}/old/model.ckpt-3", f"{tmp_path}/new/model.ckpt-3", "--restart")


@pytest.mark.slow
def test_log_dir_wins_over_checkpoint_path(tmp_path, caplog):
    train(tmp_path / "a", 5)
    train(tmp_path / "b", 7)
    result = train(tmp_path / "a", 9, checkpoint_path=str(tmp_path / "b"))
    assert result.global_step == 9
    assert f"Ignoring --checkpoint_path because a checkpoint already exists in {tmp_path / 'a'}" in caplog.text
