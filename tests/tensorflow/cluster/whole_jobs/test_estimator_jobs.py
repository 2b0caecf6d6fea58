"""Estimators in jobs whose processes are started one by one, with TF_CONFIG and `moxing run`."""

from __future__ import annotations

import json
import re
import signal

import pytest
from estimator_jobs import SCRIPT, job, saved_step, saved_steps, start, told
from jobs import DEADLINE, PROGRAMS, Job


def evaluated(log: str) -> list[int]:
    """The steps of the evaluated checkpoints."""
    return [int(step) for step in re.findall(r"Saving dict for global step (\d+)", log)]


def test_a_job_by_tf_config_trains_to_its_target_and_is_evaluated(tmp_path):
    with job(tmp_path, evaluator=True, steps=301) as running:
        codes = running.wait()
        assert set(codes.values()) == {0}, running.logs
    assert saved_step(tmp_path) == 301
    assert evaluated(running["evaluator 0"].log)[-1] == 301
    assert len(list((tmp_path / "model" / "export" / "last").glob("*/saved_model.pb"))) == 1
    for name, task in (("worker 0", "chief"), ("worker 1", "worker"), ("evaluator 0", "evaluator")):
        assert f"ENDED {task} 0" in running[name].log
    # The rest of the script does not run on a ps.
    assert "ENDED" not in running["ps 0"].log


@pytest.mark.slow
def test_without_train_and_evaluate(tmp_path):
    """The ps serves there too, and the settings of the session are the user's, without filters of devices."""
    with job(tmp_path, call="train", session_config=True) as running:
        codes = running.wait()
        assert set(codes.values()) == {0}, running.logs
    assert saved_step(tmp_path) == 200


@pytest.mark.slow
def test_synchronous_workers(tmp_path):
    with job(tmp_path, sync=True, steps=20) as running:
        codes = running.wait()
        assert set(codes.values()) == {0}, running.logs
    assert 20 <= saved_step(tmp_path) <= 21


@pytest.mark.slow
def test_the_data_end_first(tmp_path):
    """The last checkpoint has the steps of all workers, and the evaluator notices that no other will come."""
    with job(tmp_path, evaluator=True, supervised=True, batches=40, steps=10_000, throttle=600, meet=2) as running:
        codes = running.wait()
        assert set(codes.values()) == {0}, running.logs
    assert saved_step(tmp_path) == 80
    assert evaluated(running["evaluator 0"].log)[-1] == 80


@pytest.mark.slow
def test_a_signal_to_one_worker_stops_all(tmp_path):
    with job(tmp_path, steps=100_000, delay=0.002) as running:
        running.wait_until(lambda: any(saved_steps(tmp_path)))
        running["worker 1"].send(signal.SIGTERM)
        codes = running.wait(60)
        assert codes == {"worker 0": 143, "worker 1": 143, "ps 0": 0}, running.logs
    step = saved_step(tmp_path)
    with job(tmp_path, steps=step + 11) as running:
        codes = running.wait()
        assert set(codes.values()) == {0}, running.logs
    assert f"Restoring parameters from {tmp_path}/model/model.ckpt-{step}" in running["worker 0"].log
    assert saved_step(tmp_path) == step + 11


@pytest.mark.slow
@pytest.mark.parametrize(
    "victim",
    ["ps 0", pytest.param("worker 0", marks=pytest.mark.slow), pytest.param("worker 1", marks=pytest.mark.slow)],
)
def test_the_survivors_name_the_dead(tmp_path, victim):
    with job(tmp_path, evaluator=True, steps=100_000, delay=0.002) as running:
        running.wait_until(lambda: any(saved_steps(tmp_path)))
        running[victim].send(signal.SIGKILL)
        survivors = [name for name in ("worker 0", "worker 1", "ps 0") if name != victim]
        codes = running.wait(30, survivors)
        assert all(codes.values()), running.logs  # neither 0 nor None, which is one that did not end
        for name in survivors:
            shown = {"worker 0": r"worker 0 \(chief in TF_CONFIG\)", "worker 1": r"worker 1 \(worker 0 in TF_CONFIG\)"}
            pattern = rf"{shown.get(victim, victim)} was lost: .*the process has died"
            assert re.search(pattern, running[name].log), running[name].log
        # An evaluator is no member of the job: it waits for its return.
        evaluator = running["evaluator 0"]
        alone = Job([evaluator])
        alone.wait_until(lambda: victim != "worker 0" or "was lost: the chief's port" in evaluator.log, 30)
        assert not evaluator.has_ended()


GOOD = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"]}


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("{cluster", "is not JSON"),
        (
            {"cluster": GOOD, "task": {"type": "worker", "index": 1}},
            "TF_CONFIG task.index=1: cluster.worker has 1 host",
        ),
        (
            {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "worker", "index": 0}},
            "TF_CONFIG task.type=",
        ),
        ({"cluster": {**GOOD, "chief": ["a:1", "b:1"]}, "task": {"type": "ps", "index": 0}}, "has the chiefs a:1,b:1"),
        ({"cluster": GOOD, "task": {"type": "boss", "index": 0}}, "TF_CONFIG task.type='boss': expected one of"),
        ({"cluster": {**GOOD, "ps": ["127.0.0.1:1"]}, "task": {"type": "ps", "index": 0}}, "127.0.0.1:1 is in"),
        ({"cluster": GOOD}, "TF_CONFIG has a cluster and task=None"),
        ({"cluster": GOOD, "task": {"type": "evaluator", "index": 1}}, "a job has one evaluator"),
    ],
)
def test_a_wrong_tf_config_is_an_error_in_words(tmp_path, config, error):
    text = config if isinstance(config, str) else json.dumps(config)
    ended = Job([start(tmp_path, "one", {"TF_CONFIG": text, **told(tmp_path)})])
    try:
        assert ended.wait(DEADLINE) == {"one": 2}, ended.logs
    finally:
        ended.kill()
    (line,) = [line for line in ended["one"].log.splitlines() if line.startswith("moxing run: error: ")]
    assert error in line
    assert "Traceback" not in ended.logs
    assert not (tmp_path / "model").exists()


def test_mox_run_has_no_evaluator(tmp_path):
    words = [PROGRAMS / "linear_job.py", "--worker_hosts=127.0.0.1:1,127.0.0.1:2", "--ps_hosts=127.0.0.1:3"]
    environment = {"JOB": json.dumps({"log_dir": str(tmp_path / "log")}), "PYTHONPATH": str(PROGRAMS)}
    ended = Job([start(tmp_path, "one", environment, [*words, "--job_name=evaluator"])])
    try:
        assert ended.wait(DEADLINE) == {"one": 2}, ended.logs
    finally:
        ended.kill()
    assert "mox.run in an evaluator process" in ended["one"].log
    assert not (tmp_path / "log").exists()


def test_the_role_is_that_of_the_flags(tmp_path):
    words = [SCRIPT, "--worker_hosts=127.0.0.1:1,127.0.0.1:2", "--ps_hosts=127.0.0.1:3", "--job_name=evaluator"]
    ended = Job([start(tmp_path, "one", told(tmp_path), [*words, "--task_index=1"])])
    try:
        assert ended.wait(DEADLINE) == {"one": 2}, ended.logs
    finally:
        ended.kill()
    assert "--task_index=1 with --job_name=evaluator: a job has one evaluator, expected 0." in ended["one"].log
