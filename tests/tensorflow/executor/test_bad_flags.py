"""Wrong flags of devices and clusters; a run that fails leaves nothing behind."""

from __future__ import annotations

import shutil

import pytest
from bad_runs import error_of, forbidden_model, holds
from line_problem import run

import moxing.tensorflow as mox
from moxing.framework.flags import FlagError, FlagNotAvailableError
from moxing.tensorflow.cluster.roles import RoleError


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("warmup_steps", 10),
        ("var_space_starter", 3),
        ("var_mix_offset", 3),
        ("variable_update", "auto"),
        ("variable_update", "distributed_replicated_mix"),
    ],
)
def test_what_is_not_there_yet_is_refused(flag, value):
    mox.set_flag(flag, value)
    text = error_of(FlagNotAvailableError, model_fn=forbidden_model)
    assert holds(text, f"--{flag}={value}", "version")


@pytest.mark.parametrize("update", ["collective", "distributed_replicated", "distributed_replicated_dgc"])
def test_a_clusters_way_of_updating_needs_one(update):
    mox.set_flag("variable_update", update)
    text = error_of(FlagError, model_fn=forbidden_model)
    assert holds(text, f"--variable_update={update}", "cluster", "--worker_hosts")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"job_name": "ps"}, ["--job_name=ps", "--ps_hosts"]),
        ({"ps_hosts": "a:1", "job_name": "worker"}, ["--ps_hosts=a:1", "--worker_hosts"]),
        ({"worker_hosts": "a:1,b:2", "job_name": "worker", "task_index": 2}, ["--task_index=2", "--worker_hosts"]),
        ({"worker_hosts": "a:1,a:1", "job_name": "worker"}, ["--worker_hosts", "a:1"]),
    ],
)
def test_a_cluster_that_cannot_be_is_an_error_at_the_start(flags, words):
    for name, value in flags.items():
        mox.set_flag(name, value)
    assert holds(error_of(RoleError, model_fn=forbidden_model), *words)


@pytest.mark.parametrize("value", [0, -1])
def test_wrong_num_gpus(value):
    mox.set_flag("num_gpus", value)
    assert holds(error_of(FlagError, model_fn=forbidden_model), f"--num_gpus={value}", "expected 1")


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("num_gpus", 1),
        ("job_name", "worker"),
        ("worker_hosts", "a:1"),
        ("task_index", 0),
        ("variable_update", "parameter_server"),
        ("warmup_steps", 0),
    ],
)
def test_flags_that_ask_for_one_process_are_taken(flag, value):
    mox.set_flag(flag, value)
    assert run(max_number_of_steps=1).global_step == 1


def test_a_failed_run_changes_nothing(log_dir, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    with pytest.raises(TypeError):
        run(log_dir=log_dir, model_fn=lambda inputs, mode: None, max_number_of_steps=9)
    assert sorted(path.name for path in copy.iterdir()) == sorted(path.name for path in log_dir.iterdir())
    assert (copy / "checkpoint").read_text() == (log_dir / "checkpoint").read_text()
    assert run(log_dir=log_dir, max_number_of_steps=5).global_step == 5
