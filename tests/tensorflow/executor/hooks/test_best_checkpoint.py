"""Best checkpoints in whole runs."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from hook_runs import best, saved, saved_steps, train

import moxing.tensorflow as mox


@pytest.mark.parametrize(("keep", "kept"), [(1, [4]), (2, [2, 4])])
@pytest.mark.parametrize("towers", [1, 2])
def test_the_best_checkpoint_is_kept(keep, kept, towers, tmp_path):
    """|w + 5| is 3, 1, 1, 3 after 2, 4, 6, 8 steps."""
    mox.set_flag("num_gpus", towers)
    hooks = lambda batch, w: [best({"x": tf.abs(w + 5.0)}, "x", keep=keep)]  # noqa: E731
    result = train(hooks, tmp_path, steps=8, inter_mode="EVAL")
    assert result.log_info["w"] == -7.0  # the training ends with its own variables
    assert saved_steps(tmp_path / "best") == kept
    assert saved(tmp_path / "best", 4) == -4.0
    # What it holds is a whole checkpoint: it can be evaluated.
    evaluated = train(lambda batch, w: [], mode="EVAL", steps=1, checkpoint_path=str(tmp_path / "best"))
    assert evaluated.log_info["w"] == -4.0
    assert evaluated.global_step == 4


def test_the_best_value_survives_a_restart(tmp_path):
    """Higher is better: -|w + 5| is -3, -1 after 2, 4 steps; then the run begins anew with a worse one."""
    hooks = lambda batch, w: [best({"accuracy": -tf.abs(w + 5.0)}, "accuracy", keep=2)]  # noqa: E731
    train(hooks, tmp_path, steps=4, inter_mode="EVAL")
    assert saved_steps(tmp_path / "best") == [2, 4]
    train(hooks, tmp_path, steps=8, inter_mode="EVAL")
    assert saved_steps(tmp_path / "best") == [2, 4]
    # A gain of the later run removes the oldest of the earlier one.
    rising = lambda batch, w: [best({"accuracy": tf.abs(w)}, "accuracy", keep=2)]  # noqa: E731
    train(rising, tmp_path, steps=10, inter_mode="EVAL")
    assert saved_steps(tmp_path / "best") == [4, 10]


def test_min_delta_and_the_place_of_the_best(tmp_path):
    def hooks(batch, w):
        near = best({"x": tf.abs(w)}, "x", min_delta=2.0, mode="max", directory="far")
        return [near, best({"x": tf.abs(w + 1.0)}, "x")]

    train(hooks, tmp_path, steps=8, inter_mode="EVAL")
    assert saved_steps(tmp_path / "far") == [6]  # 2, not 4 (exactly 2 more), 6
    assert saved_steps(tmp_path / "best") == [2]


def test_two_best_in_one_place(tmp_path):
    def hooks(batch, w):
        early = mox.EarlyStoppingHook({"y": w}, "y", 1, 2, 1, patience=9, restore_best=True)
        return [early, best({"x": w}, "x")]

    with pytest.raises(ValueError, match=r"BestCheckpointHook\(directory='best'\): another hook"):
        train(hooks, tmp_path, inter_mode="EVAL")
    with pytest.raises(ValueError, match="BestCheckpointHook keeps the best variables in log_dir"):
        train(lambda batch, w: [best({"x": w}, "x")], inter_mode="EVAL")
