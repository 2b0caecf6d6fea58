"""Estimators in jobs: TF_CONFIG from MoXing's flags."""

from __future__ import annotations

import json
import os

import pytest

from helpers.estimator_models import input_fn, make
from moxing.framework.flags import FLAGS
from moxing.tensorflow import estimator
from moxing.tensorflow.cluster.roles import Role, RoleError
from moxing.tensorflow.estimator.job import EstimatorJob, role_of, set_tf_config, tf_config


@pytest.mark.parametrize(
    ("role", "task"),
    [
        (Role("worker", 0, ("a:1", "b:1"), ("c:1",)), {"type": "chief", "index": 0}),
        (Role("worker", 1, ("a:1", "b:1"), ("c:1",)), {"type": "worker", "index": 0}),
        (Role("ps", 0, ("a:1", "b:1"), ("c:1",)), {"type": "ps", "index": 0}),
    ],
)
def test_tf_config(role, task):
    config = json.loads(tf_config(role))
    assert config == {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "task": task}


def test_the_environment_of_the_user_stays(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    set_tf_config()
    assert "TF_CONFIG" not in os.environ
    for name, value in (("worker_hosts", "a:1,b:1"), ("ps_hosts", "c:1"), ("job_name", "worker"), ("task_index", 1)):
        FLAGS.set(name, value)
    monkeypatch.setenv("TF_CONFIG", '{"mine": 1}')
    set_tf_config()
    assert os.environ["TF_CONFIG"] == '{"mine": 1}'
    monkeypatch.setenv("TF_CONFIG", "")
    set_tf_config()
    assert json.loads(os.environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}


def test_workers_without_ps_are_refused(tmp_path):
    for name, value in (("worker_hosts", "a:1,b:1"), ("job_name", "worker"), ("task_index", 0)):
        FLAGS.set(name, value)
    for max_steps in (None, 1):  # at step 1 there is nothing left to train
        (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\n')
        with pytest.raises(RoleError, match=r"a job of 2 workers without parameter servers.*--ps 1"):
            make(tmp_path).train(input_fn, max_steps=max_steps)


def config_of(monkeypatch, cluster, kind, index):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}))
    return estimator.RunConfig()


@pytest.mark.parametrize("chief", ["chief", "master"])
def test_the_role_of_a_run_config(monkeypatch, chief):
    cluster = {chief: ["a:1"], "worker": ["b:1", "b:2"], "ps": ["c:1"]}
    for kind, index, name in ((chief, 0, "worker 0"), ("worker", 1, "worker 2"), ("ps", 0, "ps 0")):
        role = role_of(config_of(monkeypatch, cluster, kind, index))
        assert (role.name, role.task(name), role.cluster) == (name, (kind, index), cluster)
        assert (role.origin, role.is_chief) == ("TF_CONFIG", kind == chief)
    assert not role_of(config_of(monkeypatch, {"chief": ["a:1"], "ps": ["c:1"]}, "evaluator", 0)).is_cluster
    monkeypatch.setenv("TF_CONFIG", " ")
    set_tf_config()
    assert role_of(estimator.RunConfig()) == Role()


def test_a_script_that_writes_tf_config_from_flags_of_its_own(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")
    for name, value in (("worker_hosts", "a:1,b:1"), ("ps_hosts", "c:1"), ("job_name", "chief")):
        FLAGS.set(name, value)
    set_tf_config()
    assert "TF_CONFIG" not in os.environ
    role = role_of(config_of(monkeypatch, {"chief": ["d:1"], "ps": ["c:1"]}, "chief", 0))
    assert (role.name, role.workers, role.origin) == ("worker 0", ("d:1",), "TF_CONFIG")


def test_an_evaluator_of_the_flags(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")
    for name, value in (("worker_hosts", "a:1,b:1"), ("ps_hosts", "c:1"), ("job_name", "evaluator")):
        FLAGS.set(name, value)
    set_tf_config()
    config = json.loads(os.environ["TF_CONFIG"])
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert config["cluster"]["chief"] == ["a:1"]


def test_a_protocol_that_is_not_there(monkeypatch):
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": {"chief": ["a:1"], "ps": ["c:1"]}, "task": {"type": "chief", "index": 0}})
    )
    with pytest.raises(ValueError, match=r"RunConfig\(protocol='grpc\+verbs'\).*use grpc"):
        EstimatorJob().join(estimator.RunConfig(protocol="grpc+verbs"))


def test_a_process_that_runs_alone_has_no_job(tmp_path):
    job = EstimatorJob()
    job.join(make(tmp_path).config)
    assert (job.hooks(), job.chief_hooks(), job.budget([])) == ([], [], None)
