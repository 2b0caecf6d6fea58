"""Traces of steps, read back from their files."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from hook_runs import bad_at, train

import moxing.tensorflow as mox
from moxing.tensorflow.executor import NotFiniteError


def products(batch, w):
    """Large enough for TensorFlow to take it for an operation worth recording."""
    matrix = tf.fill([300, 300], w * 1e-3)
    return w + tf.reduce_mean(tf.matmul(matrix, matrix, name="the_product"))


def traces(directory):
    return [path.read_bytes() for path in sorted(directory.glob("plugins/profile/*/*.xplane.pb"))]


@pytest.mark.parametrize("start", [0, 4])
def test_a_trace_of_some_steps(start, tmp_path, caplog):
    caplog.set_level("INFO")
    train(lambda batch, w: [mox.ProfilerHook(start, steps=3)], tmp_path, loss=products)
    (trace,) = traces(tmp_path)
    assert b"the_product" in trace
    assert f"Profile written to: {tmp_path / 'plugins' / 'profile'}" in caplog.messages


def test_a_trace_is_written_when_the_run_ends_in_it(tmp_path):
    def loss(batch, w):
        return products(batch, w) + bad_at(6)(batch)

    for place in ("first", "second"):  # the profiler of the first is not left running
        with pytest.raises(NotFiniteError):
            train(lambda batch, w: [mox.ProfilerHook(2, 100, str(tmp_path / place))], loss=loss)  # noqa: B023
        assert b"the_product" in traces(tmp_path / place)[0]


def test_where_a_trace_cannot_be(tmp_path, caplog):
    train(lambda batch, w: [mox.ProfilerHook(20, directory=str(tmp_path / "late")), mox.ProfilerHook()])
    assert "ProfilerHook writes no trace" in caplog.text
    assert "ProfilerHook(start_step=20): the run ended at step 10; nothing was recorded." in caplog.text
    train(lambda batch, w: [mox.ThroughputHook(), mox.GradientNormHook()], steps=2)
    assert "ThroughputHook does nothing" in caplog.text and "GradientNormHook does nothing" in caplog.text
    train(lambda batch, w: [], tmp_path, steps=5)
    train(lambda batch, w: [mox.ProfilerHook(3)], tmp_path)
    assert any("begins at step 5; nothing is recorded" in line for line in caplog.messages)
