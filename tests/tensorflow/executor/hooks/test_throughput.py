"""Steps and samples per second."""

from __future__ import annotations

import pytest
from events import scalars
from hook_runs import train

import moxing.tensorflow as mox
from moxing.tensorflow.executor.build.ledger import LedgerValues
from moxing.tensorflow.executor.hooks.throughput import ThroughputAction
from moxing.tensorflow.executor.loop.progress import Progress


@pytest.mark.parametrize("towers", [1, 2])
def test_throughput(towers, tmp_path, caplog):
    caplog.set_level("INFO")
    mox.set_flag("num_gpus", towers)
    train(lambda batch, w: [mox.ThroughputHook(5, log=True)], tmp_path, steps=17, batch_size=3, save_summary_steps=0)
    found = scalars(tmp_path)
    assert sorted(found["steps_per_sec"]) == [5, 10, 15]  # the first steps only start the clock
    for step, rate in found["steps_per_sec"].items():
        assert rate > 0
        assert found["samples_per_sec"][step] == pytest.approx(3 * towers * rate)
    assert [line.split("\t")[0] for line in caplog.messages if "steps_per_sec" in line] == [
        f"step: {step}" for step in (5, 10, 15)
    ]


def test_throughput_leaves_out_what_is_no_training(monkeypatch):
    written = []

    class Events:
        def add_scalars(self, values, step):
            written.append(values)

    clock = [100.0]
    monkeypatch.setattr("moxing.tensorflow.executor.hooks.throughput.time.perf_counter", lambda: clock[0])
    action = ThroughputAction(10, Events(), log=False)
    action.act(1, Progress(1, LedgerValues(samples=4, steps=1, last={}, means={})))
    clock[0] += 7.0
    action.pause(5.0)
    action.act(11, Progress(11, LedgerValues(samples=44, steps=11, last={}, means={})))
    assert written == [{"steps_per_sec": 5.0, "samples_per_sec": 20.0}]
