"""The callback at the end of a run: normal, by error, by signal."""

from __future__ import annotations

import os
import signal

import pytest
import tensorflow.compat.v1 as tf
from hook_runs import nan_loss, saved_steps, train

import moxing.tensorflow as mox
from moxing.tensorflow.executor import NotFiniteError
from moxing.tensorflow.executor.hooks.run_end import takes


def test_the_end_is_told(tmp_path):
    ends = []
    result = train(lambda batch, w: [mox.RunEndHook(ends.append)], tmp_path)
    (end,) = ends
    assert (end.reason, end.global_step, end.error) == ("end", 10, None)
    assert end.result is result
    assert end.log_info == {"w": -9.0}


def test_a_run_without_a_step_has_no_values(tmp_path):
    ends = []
    hooks = lambda batch, w: [mox.RunEndHook(ends.append)]  # noqa: E731
    assert train(hooks, tmp_path, steps=3).log_info == {"w": -2.0}
    result = train(hooks, tmp_path, steps=3)
    assert (result.global_step, result.log_info, ends[1].log_info) == (3, {}, {})


def test_an_error_is_told():
    ends = []
    with pytest.raises(NotFiniteError) as caught:
        train(lambda batch, w: [mox.RunEndHook(ends.append)], loss=nan_loss(4), log_every_n_steps=1)
    (end,) = ends
    assert (end.reason, end.global_step, end.error, end.result) == ("error", 4, caught.value, None)
    assert end.log_info == {"w": -3.0}


def test_a_callback_that_fails(caplog):
    def fails(end):
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        train(lambda batch, w: [mox.RunEndHook(fails)])
    with pytest.raises(NotFiniteError):
        train(lambda batch, w: [mox.RunEndHook(fails)], loss=nan_loss(4))
    assert any("RunEndHook failed after the run had ended: RuntimeError('no network')" in m for m in caplog.messages)


def test_a_signal_is_told(tmp_path):
    ends = []

    class Sends(tf.train.SessionRunHook):
        steps = 0

        def after_run(self, context, values):
            self.steps += 1
            if self.steps == 4:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit):
        train(lambda batch, w: [mox.RunEndHook(ends.append), Sends()], tmp_path)
    (end,) = ends
    assert (end.reason, end.error) == ("signal", None)
    assert end.global_step == saved_steps(tmp_path)[-1] == 4


@pytest.mark.parametrize(
    ("function", "count", "expected"),
    [
        (lambda: None, 0, True),
        (lambda: None, 1, False),
        (lambda end, more=None: None, 1, True),
        (lambda end, more: None, 1, False),
        (lambda *ends: None, 1, True),
        (lambda end, *, name: None, 1, False),
        (max, 1, True),
    ],
)
def test_takes_a_number_of_arguments(function, count, expected):
    assert takes(function, count) is expected
