"""`moxing run --workers 2 --ps 1 --evaluator` on an Estimator script: to the target, also after kill -9."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from estimator_jobs import SCRIPT, saved_step, saved_steps, told
from jobs import DEADLINE
from test_deaths import processes_of

TARGET = 301


def launch(tmp_path, *options, kill=None, **training):
    """Runs the job to its end; kills the process `kill` after the first checkpoint. Returns what the launcher said."""
    command = [sys.executable, "-m", "moxing", "run", "--workers", "2", "--ps", "1", *options]
    command += ["--cluster_logs", "logs", str(SCRIPT)]
    # A TF_CONFIG of the machine does not count.
    environment = {**os.environ, "MOX_SILENT_MODE": "0", "TF_CONFIG": '{"cluster": {}}', **told(tmp_path, **training)}
    output = tmp_path / "output"
    with output.open("wb") as file:
        launcher = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + DEADLINE
        while kill and not any(saved_steps(tmp_path)):
            assert launcher.poll() is None and time.monotonic() < until, output.read_text()
            time.sleep(0.02)
        if kill:
            os.kill(processes_of(launcher.pid)[kill], signal.SIGKILL)
        launcher.wait(DEADLINE)
    finally:
        # The kernel ends its processes with it.
        launcher.kill()
        launcher.wait()
    assert launcher.returncode == 0, output.read_text()
    return output.read_text()


@pytest.mark.slow
def test_a_job_ends_at_its_target(tmp_path):
    said = launch(tmp_path, "--evaluator", steps=TARGET)
    assert "moxing run: 2 workers, 1 ps and 1 evaluator on this machine" in said
    assert "all 4 processes ended well, without a restart" in said
    assert saved_step(tmp_path) == TARGET
    assert len(list((tmp_path / "model" / "export" / "last").glob("*/saved_model.pb"))) == 1
    for line in ("worker 0 | ENDED chief 0", "worker 1 | ENDED worker 0", "evaluator 0 | ENDED evaluator 0"):
        assert line in said.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker 1", "worker 0", "ps 0", "evaluator 0"])
def test_a_killed_process_costs_the_steps_since_the_last_checkpoint(tmp_path, victim):
    options = ["--evaluator"] if victim == "evaluator 0" else []
    said = launch(tmp_path, *options, kill=victim, steps=TARGET, delay=0.01, save=30)
    assert f"{victim} was killed by SIGKILL; restart 1 of 3 of the whole job" in said, said
    assert "restart 2" not in said
    assert saved_step(tmp_path) == TARGET
    first, second = (tmp_path / "logs" / "worker-0.log").read_text().split("--- start 2 ---")
    saved = [int(step) for step in re.findall(r"Saving checkpoints for (\d+) into", first)]
    restored = int(re.search(r"Restoring parameters from \S*model.ckpt-(\d+)", second)[1])
    # The last one may not have been written whole.
    assert restored > 0 and restored in saved[-2:]
    if victim == "evaluator 0":
        assert len(list((tmp_path / "model" / "export" / "last").glob("*/saved_model.pb"))) == 1
    else:
        assert re.search(rf"{victim} was lost: .*the process has died", said), said
