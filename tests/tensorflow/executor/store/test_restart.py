"""--restart with a log_dir on a store."""

from __future__ import annotations

import pytest
from digits_model import evaluate, train
from uploaded import checkpoints

import moxing.tensorflow as mox


@pytest.mark.slow
def test_restart_of_a_local_log_dir_with_a_checkpoint_of_the_store(s3_folder, tmp_path):
    train(s3_folder, 5)
    train(tmp_path / "log", 9)
    mox.set_flag("restart", True)
    mox.set_flag("checkpoint_exclude_patterns", "global_step")
    assert train(tmp_path / "log", 3, checkpoint_path=s3_folder).global_step == 3
    assert (tmp_path / "log" / "before_restart_1" / "model.ckpt-9.index").exists()


def test_restart_sets_the_checkpoints_aside(s3_folder, lines):
    train(s3_folder, 5)
    mox.set_flag("restart", True)
    assert train(s3_folder, 3).global_step == 3
    # Once in a process: what it has trained since then stays.
    assert train(s3_folder, 4).global_step == 4
    assert f"--restart: moved the checkpoints of {s3_folder} to {s3_folder}/before_restart_1." in lines()
    assert checkpoints(s3_folder) == [0, 3, 4]
    assert checkpoints(s3_folder + "/before_restart_1") == [0, 5]
    mox.set_flag("restart", None)
    assert evaluate(s3_folder + "/before_restart_1").checkpoint_path.endswith("before_restart_1/model.ckpt-5")
