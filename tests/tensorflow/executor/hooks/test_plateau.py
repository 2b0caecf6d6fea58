"""Decisions on plateaus, and whole runs whose learning rate is lowered."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from evaluation_runs import NONE, STOP, Recorder, decisions, run
from line_problem import sgd

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer import learning_rate_scheduler


@pytest.mark.parametrize(
    ("values", "arguments", "expected"),
    [
        # One decay by default: a plateau, a decay, a plateau as high as the first.
        ([0.5] * 5, {"patience": 2}, [NONE, NONE, [0.1], NONE, STOP]),
        # The decay helps (0.5 to 0.7), so that the next plateau brings the next decay; that one does not.
        ([0.5, 0.5, 0.7, 0.7, 0.7], {"patience": 1}, [NONE, [0.1], NONE, [0.01], STOP]),
        # A gain, but not more than decay_min_delta.
        ([0.5, 0.5, 0.7, 0.7], {"patience": 1, "decay_min_delta": 0.3}, [NONE, [0.1], NONE, STOP]),
        ([0.5] * 4, {"patience": 1, "decay_patience": 2, "decay_rate": 0.5}, [NONE, [0.5], [0.25], STOP]),
        ([0.5] * 2, {"patience": 1, "decay_patience": 0}, [NONE, STOP]),
        ([3.0, 2.0, 2.0], {"monitor": "loss", "patience": 1}, [NONE, NONE, [0.1]]),
    ],
)
def test_plateau(values, arguments, expected):
    assert decisions(mox.PlateauLREarlyStoppingHook, values, **arguments) == expected


def test_a_run_goes_on_where_it_was():
    with tf.Graph().as_default():
        one = {"x": tf.constant(0.0)}
        hook = mox.PlateauLREarlyStoppingHook(one, "x", 1, 1, patience=1)
        hook.load_state(
            {"value": 1.0, "waited": 0, "levels": {"value": 1.0, "waited": 0}, "factor": 0.1, "stopped": False}
        )
        hook.resume(lowered := Recorder())
        assert lowered.done == [0.1]
        early = mox.EarlyStoppingHook(one, "x", 1, 1, patience=2)
        early.load_state({"value": 1.0, "waited": 2})
        early.resume(stopped := Recorder())
        assert stopped.done == ["stop"]


def plateau(**arguments):
    return lambda batch, w: [
        mox.PlateauLREarlyStoppingHook({"x": 1.0 + 0.0 * w}, "x", 4, 8, patience=1, prefix="[P]", **arguments)
    ]


def with_schedule():
    rate = learning_rate_scheduler.piecewise_lr("1.25:1.0,100:2.0", num_samples=16, global_batch_size=4)
    return tf.train.MomentumOptimizer(rate, momentum=0.0)


OPTIMIZERS = {
    "sgd": sgd(1.0),
    "function": lambda: tf.train.GradientDescentOptimizer(lambda: 1.0),
    "momentum": mox.get_optimizer_fn("momentum", learning_rate=1.0, momentum=0.0),
    "wrapped": mox.get_optimizer_wrapper_fn("ema", sgd(1.0)),
    "twice": mox.get_optimizer_wrapper_fn("lookahead", mox.get_optimizer_wrapper_fn("ema", sgd(1.0)), k=1, alpha=1.0),
}


@pytest.mark.parametrize("name", [*OPTIMIZERS])
def test_plateau_lowers_the_rate(name, tmp_path):
    """Evaluations after 2, 4, 6 steps, all 1: after 4 the rate is a tenth, after 6 it is over."""
    result = run(plateau(), tmp_path, optimizer_fn=OPTIMIZERS[name], steps=100)
    assert result.global_step == 6
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == pytest.approx(-4.2)


def test_plateau_and_a_schedule(tmp_path):
    result = run(plateau(), tmp_path, optimizer_fn=with_schedule, steps=100)
    # Rates 1, 1, 1, 1, and times a tenth 1 and 2.
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == pytest.approx(-4.3)


def test_plateau_over_a_restart(tmp_path):
    assert run(plateau(), tmp_path, steps=5).global_step == 5
    result = run(plateau(), tmp_path, steps=100)
    assert result.global_step == 6
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == pytest.approx(-4.2)
    assert run(plateau(), tmp_path, steps=100).global_step == 6


def test_optimizer_without_a_rate():
    class Own(tf.train.Optimizer):
        def __init__(self):
            super().__init__(False, "Own")

    with pytest.raises(NotImplementedError, match="Own: cannot change the learning rate"):
        run(plateau(), optimizer_fn=Own)
