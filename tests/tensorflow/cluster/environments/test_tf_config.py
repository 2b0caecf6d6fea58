"""Roles from TF_CONFIG, as Kubeflow writes it."""

from __future__ import annotations

import json

import pytest

from moxing.tensorflow.cluster.environments import tf_config
from moxing.tensorflow.cluster.roles import RoleError

CHIEF, WORKERS, PS = ["c:2222"], ["a:2222", "b:2222"], ["p:2222"]
FULL = {"chief": CHIEF, "worker": WORKERS, "ps": PS, "evaluator": ["e:2222"]}


@pytest.fixture
def role_of(monkeypatch):
    def detect(cluster, job="worker", index=0, **more):
        config = {"cluster": cluster, "task": {"type": job, "index": index}, "environment": "cloud", **more}
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
        return tf_config.detect()

    return detect


def test_not_set_or_empty(monkeypatch):
    assert tf_config.detect() is None
    monkeypatch.setenv("TF_CONFIG", " ")
    assert tf_config.detect() is None


@pytest.mark.parametrize(
    ("job", "index", "name", "address"),
    [
        ("chief", 0, "worker 0", "c:2222"),
        ("worker", 0, "worker 1", "a:2222"),
        ("worker", 1, "worker 2", "b:2222"),
        ("ps", 0, "ps 0", "p:2222"),
    ],
)
def test_the_chief_is_worker_0(role_of, job, index, name, address):
    role = role_of(FULL, job, index)
    assert (role.name, role.address) == (name, address)
    assert role.workers == ("c:2222", "a:2222", "b:2222") and role.ps == ("p:2222",)
    assert len(role.peers) == 3
    assert role.origin == "TF_CONFIG"


def test_master_is_the_old_name_of_the_chief(role_of):
    role = role_of({"master": CHIEF, "worker": WORKERS}, "worker", 1)
    assert (role.name, role.workers) == ("worker 2", ("c:2222", "a:2222", "b:2222"))
    assert role_of({"master": CHIEF, "worker": WORKERS}, "master").is_chief


def test_without_a_chief_worker_0_is_it(role_of):
    assert role_of({"worker": WORKERS}, "worker", 0).is_chief
    assert role_of({"worker": WORKERS, "chief": []}, "worker", 1).name == "worker 1"
    assert role_of({"worker": WORKERS}, "worker", "1").name == "worker 1"


def test_an_evaluator_is_on_its_own(role_of):
    for cluster in (FULL, {"chief": CHIEF, "worker": WORKERS}):
        role = role_of(cluster, "evaluator")
        assert (role.job, role.peers, role.is_cluster, role.is_chief, role.num_workers) == (
            *("evaluator", {}, False),
            *(False, 1),
        )
    assert not any("evaluator" in name for name in role_of(FULL, "chief").peers)


@pytest.mark.parametrize("cluster", [{"worker": ["a:2222"]}, {"chief": ["a:2222"], "evaluator": ["e:2222"]}])
def test_one_process_is_no_cluster(role_of, cluster):
    role = role_of(cluster, next(iter(cluster)))
    assert not role.is_cluster and role.is_chief


@pytest.mark.parametrize("text", ["{}", '{"cluster": {}}', '{"cluster": {"worker": []}}', '{"cluster": null}'])
def test_an_empty_cluster_is_none(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    assert not tf_config.detect().is_cluster


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{'cluster'", "is not JSON"),
        ("[1]", "expected an object"),
        ('{"cluster": ["a:1"]}', "TF_CONFIG cluster=['a:1']: expected an object"),
        ('{"cluster": {"worker": ["a:1", "b:1"]}}', "TF_CONFIG has a cluster and task=None; expected a task"),
        ('{"cluster": {"worker": ["a:1", "b:1"]}, "task": {}}', "expected a task"),
        ('{"cluster": {"worker": "a:1"}}', "TF_CONFIG cluster.worker='a:1': expected a list"),
        ('{"cluster": {"worker": {"1": "a:1"}}}', "TF_CONFIG cluster.worker={'1': 'a:1'}: expected a list"),
        ('{"cluster": {"workers": ["a:1"]}}', "TF_CONFIG cluster.workers: expected one of chief, master, worker"),
        ('{"cluster": {"chief": ["a:1"], "master": ["b:1"]}}', "the chiefs a:1,b:1"),
    ],
)
def test_what_cannot_be_read(monkeypatch, text, message):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(RoleError, match="TF_CONFIG") as caught:
        tf_config.detect()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "job", "index", "message"),
    [
        (FULL, "worker", 2, "TF_CONFIG task.index=2: cluster.worker has 2 hosts (a:2222,b:2222), expected 0 to 1."),
        (FULL, "evaluator", 1, "TF_CONFIG task.index=1: cluster.evaluator has 1 host"),
        (FULL, "worker", -1, "TF_CONFIG task.index=-1"),
        (FULL, "worker", None, "TF_CONFIG task.index=None"),
        (FULL, "worker", True, "TF_CONFIG task.index=True"),
        (FULL, "Worker", 0, "TF_CONFIG task.type='Worker': expected one of"),
        ({"worker": WORKERS}, "ps", 0, "TF_CONFIG task.type='ps': cluster has worker."),
        ({"ps": PS}, "ps", 0, "neither chief nor worker"),
        ({"worker": ["a:1", "b"]}, "worker", 0, "TF_CONFIG cluster.worker=a:1,b: 'b' has no port"),
        ({"worker": ["a:1", "a:1"]}, "worker", 0, "TF_CONFIG cluster.worker: a:1 is listed twice"),
        ({"chief": ["a:1"], "worker": ["a:1"]}, "worker", 0, "a:1 is in TF_CONFIG cluster.chief too"),
    ],
)
def test_what_cannot_be_meant(role_of, cluster, job, index, message):
    with pytest.raises(RoleError) as caught:
        role_of(cluster, job, index)
    assert message in str(caught.value)
