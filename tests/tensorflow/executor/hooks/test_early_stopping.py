"""Decisions of early stopping, and whole runs that it ends."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from evaluation_runs import NONE, STOP, decisions, evaluated, run

import moxing.tensorflow as mox


@pytest.mark.parametrize(
    ("values", "arguments", "expected"),
    [
        # The documented run: 0.000 four times.
        ([0.0] * 4, {"min_delta": 0.01, "patience": 3}, [NONE, NONE, NONE, STOP]),
        # Exactly min_delta more is no gain; a gain begins the count anew.
        ([0.5, 0.75, 0.625, 1.0, 1.0], {"min_delta": 0.25, "patience": 3}, [NONE, NONE, NONE, NONE, NONE]),
        ([0.5, 0.75, 0.625, 0.75], {"min_delta": 0.25, "patience": 3}, [NONE, NONE, NONE, STOP]),
        # Small steps that come to a gain together.
        ([0.5, 0.6, 0.7, 0.8], {"min_delta": 0.25, "patience": 3}, [NONE, NONE, NONE, NONE]),
        ([3.0, 2.0, 1.0, 2.0], {"monitor": "loss", "patience": 1}, [NONE, NONE, NONE, STOP]),
        ([3.0, 2.0], {"monitor": "loss", "mode": "max", "patience": 1}, [NONE, STOP]),
        ([3.0, 2.0], {"mode": "min", "patience": 1}, [NONE, NONE]),
        ([1.0, float("nan"), float("nan")], {"patience": 2}, [NONE, NONE, STOP]),
        ([1.0, 1.0], {"patience": 0}, [NONE, STOP]),
    ],
)
def test_early_stopping(values, arguments, expected):
    assert decisions(mox.EarlyStoppingHook, values, **arguments) == expected


def test_early_stopping_with_the_best():
    done = decisions(mox.EarlyStoppingHook, [1.0, 2.0, 1.5, 2.0], patience=2, restore_best=True)
    assert done == [["keep"], ["keep"], NONE, ["restore", "stop"]]


def early(**arguments):
    return lambda batch, w: [
        mox.EarlyStoppingHook({"accuracy": tf.minimum(-w, 25.0)}, "accuracy", 32, 640, 10, 1, prefix="[E]", **arguments)
    ]


def test_early_stopping_ends_the_run(caplog):
    """-w is 20 after the first evaluation, then 25 for ever: that one is a gain, the three behind it are none."""
    caplog.set_level("INFO")
    result = run(early(min_delta=0.01, patience=3), steps=10000)
    assert result.global_step == 100
    expected = [(19, "20.000"), *((step, "25.000") for step in (39, 59, 79, 99))]
    assert [(step, text.split()[1]) for step, text in evaluated(caplog, "[E]")] == expected


@pytest.mark.slow
def test_early_stopping_over_a_restart(tmp_path, caplog):
    caplog.set_level("INFO")
    assert run(early(patience=3), tmp_path, steps=70).global_step == 70
    # Without its memory the run would end at 140.
    assert run(early(patience=3), tmp_path, steps=10000).global_step == 100
    assert [step for step, _ in evaluated(caplog, "[E]")] == [19, 39, 59, 79, 99]
    # It has stopped; more patience lets it go on.
    assert run(early(patience=3), tmp_path, steps=10000).global_step == 100
    assert run(early(patience=5), tmp_path, steps=10000).global_step == 140


def test_the_best_is_restored(tmp_path):
    hooks = lambda batch, w: [  # noqa: E731
        mox.EarlyStoppingHook({"x": tf.abs(w + 5.0)}, "x", 4, 8, patience=2, prefix="[E]", restore_best=True)
    ]
    result = run(hooks, tmp_path, steps=100)
    # |w + 5| is 3, 1, 1 after 2, 4, 6 steps; the best is the first 1, and two evaluations later it ends.
    assert result.global_step == 8
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == -4.0
    assert (tmp_path / "best" / "model.ckpt-4.index").exists()
    with pytest.raises(ValueError, match="EarlyStoppingHook keeps the best variables in log_dir"):
        run(hooks)


def test_the_best_at_the_end_of_the_steps(tmp_path):
    hooks = lambda batch, w: [  # noqa: E731
        mox.EarlyStoppingHook({"x": tf.abs(w + 5.0)}, "x", 4, 8, patience=50, prefix="[E]", restore_best=True)
    ]
    result = run(hooks, tmp_path, steps=20, save_model_steps=10)
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == -4.0
