"""--restart with a local log_dir."""

from __future__ import annotations

import os

import pytest
from digits_model import train

import moxing.tensorflow as mox
from moxing.tensorflow.executor.checkpoints import restart
from moxing.tensorflow.executor.checkpoints.files import valid_checkpoints


def test_restart_moves_the_old_ones_aside(tmp_path):
    train(tmp_path, 5)
    mox.set_flag("restart", True)
    assert train(tmp_path, 3).global_step == 3
    assert (tmp_path / "before_restart_1" / "model.ckpt-5.index").exists()
    # What this process trained since then is not set aside again.
    assert train(tmp_path, 4).samples == 16
    assert not (tmp_path / "before_restart_2").exists()


def test_a_crash_while_moving_leaves_no_half_checkpoint_valid(tmp_path, monkeypatch):
    train(tmp_path, 5)
    moved = []

    def crash_at_the_third(source, target):
        if len(moved) == 2:
            raise KeyboardInterrupt
        moved.append(os.path.basename(source))
        os.rename(source, target)

    monkeypatch.setattr(restart.os, "replace", crash_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        restart.move_aside(str(tmp_path))
    # TRAIN wrote checkpoints 0 and 5: the marker and one index file are gone.
    assert moved[0] == "checkpoint" and moved[1].endswith(".index")
    left = valid_checkpoints(str(tmp_path))
    assert [path for path in left if not os.path.exists(path + ".data-00000-of-00001")] == []
    assert len(left) == 1
