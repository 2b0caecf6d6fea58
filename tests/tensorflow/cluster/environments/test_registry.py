"""The order of the environments, and environments that a script registers itself."""

from __future__ import annotations

import json
import os
import re

import pytest

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import Role, RoleError, current_role, register_environment
from moxing.tensorflow.cluster.environments.registry import environment_names, unregister_environment

WORKERS = "10.0.0.1:2222,10.0.0.2:2222"


def role_of(**flags) -> Role:
    FLAGS.reset()
    for name, value in flags.items():
        FLAGS.set(name, value)
    return current_role()


@pytest.fixture
def scheduler():
    """An environment of the test's own."""

    @register_environment("test_scheduler")
    def detect():
        rank = os.environ.get("TEST_RANK")
        return None if rank is None else Role("worker", int(rank), ("a:1", "b:1"), origin="TEST_RANK")

    yield detect
    unregister_environment("test_scheduler")


def test_the_order(scheduler):
    assert environment_names() == ["flags", "test_scheduler", "tf_config", "slurm"]


def test_an_environment_of_a_script(scheduler, monkeypatch):
    assert current_role() == Role()
    monkeypatch.setenv("TEST_RANK", "1")
    assert (current_role().name, current_role().peers) == ("worker 1", {"worker 0": "a:1"})
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["x:1"]}, "task": {"type": "worker", "index": 0}}')
    assert current_role().origin == "TEST_RANK"


def test_a_name_is_replaced(scheduler):
    register_environment("test_scheduler", priority=15)(lambda: Role("worker", 1, ["x:1", "y:1"]))
    assert environment_names() == ["flags", "tf_config", "test_scheduler", "slurm"]
    assert current_role() == Role("worker", 1, ("x:1", "y:1"))


def test_a_wrong_role_is_an_error_that_names_the_environment(scheduler):
    register_environment("test_scheduler")(lambda: ("worker", 0, ["a:1"]))
    expected = "The cluster environment 'test_scheduler' returned ('worker', 0, ['a:1']); expected a Role, or None"
    with pytest.raises(RoleError, match=re.escape(expected)):
        current_role()


def test_an_environment_is_asked_only_where_its_variable_is_set(scheduler, monkeypatch):
    asked = []
    register_environment("test_scheduler", variable="TEST_RANK")(lambda: asked.append("yes"))
    assert current_role() == Role() and asked == []
    monkeypatch.setenv("TEST_RANK", "")
    assert current_role() == Role() and asked == ["yes"]


def test_flags_come_before_the_environment(monkeypatch):
    config = {"cluster": {"worker": ["x:1", "y:1"]}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert current_role().name == "worker 1"
    assert role_of(job_name="worker").origin == "TF_CONFIG"  # the flag names no host
    assert role_of(worker_hosts=WORKERS, job_name="worker").origin == "--worker_hosts"


def test_tf_config_comes_before_slurm(monkeypatch):
    for name, value in {"PROCID": 1, "NTASKS": 2, "STEP_ID": 0, "JOB_NODELIST": "n[1-2]", "JOB_ID": 5}.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    assert current_role().origin == "SLURM_JOB_NODELIST"
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["x:1"]}, "task": {"type": "worker", "index": 0}}')
    assert current_role().origin == "TF_CONFIG"
    assert not current_role().is_cluster
