"""--restart with a local log_dir."""

from __future__ import annotations

from digits_model import train

import moxing.tensorflow as mox


def test_restart_moves_the_old_ones_aside(tmp_path):
    train(tmp_path, 5)
    mox.set_flag("restart", True)
    assert train(tmp_path, 3).global_step == 3
    assert (tmp_path / "before_restart_1" / "model.ckpt-5.index").exists()
    # What this process trained since then is not set aside again.
    assert train(tmp_path, 4).samples == 16
    assert not (tmp_path / "before_restart_2").exists()
