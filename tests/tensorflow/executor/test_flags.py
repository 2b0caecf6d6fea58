"""`mox.get_flag` and `mox.set_flag`: names, and roles that a scheduler gives."""

from __future__ import annotations

import json

import pytest

import moxing.tensorflow as mox


def test_both_names_of_the_argument():
    mox.set_flag(flag_name="num_gpus", value=4)
    assert mox.get_flag("num_gpus") == mox.get_flag(flag_name="num_gpus") == 4


@pytest.mark.parametrize("function", [mox.get_flag, mox.set_flag])
def test_a_name_is_required(function):
    with pytest.raises(TypeError, match=f"mox.{function.__name__}\\(\\) needs the name of a flag"):
        function()


def test_without_a_cluster_there_is_one_worker():
    assert (mox.get_flag("task_index"), mox.get_flag("job_name")) == (0, "")


def test_the_role_of_a_scheduler(monkeypatch):
    hosts = ["a:1", "b:2"]
    task = {"type": "worker", "index": 1}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": hosts, "ps": ["c:3"]}, "task": task}))
    assert mox.get_flag("worker_hosts") == "a:1,b:2"
    assert mox.get_flag("ps_hosts") == "c:3"
    assert (mox.get_flag("task_index"), mox.get_flag("job_name")) == (1, "worker")
