"""kill -9 of a process of a job while it trains: nobody hangs, and with the supervisor the job ends at its target."""

from __future__ import annotations

import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jobs import DEADLINE, SCRIPT, job, saved_steps, weights
from linear_job import Training

SYNC, ASYNC, COLLECTIVE = ("sync", 1, []), ("async", 1, ["--sync_replicas=False"]), ("collective", 0, [])


def cells(*fast: str):
    """Every victim in every layout; those that are not named are slow tests."""
    return [
        pytest.param(ps, flags, victim, id=name, marks=[] if name in fast else pytest.mark.slow)
        for layout, ps, flags in (SYNC, ASYNC, COLLECTIVE)
        for victim in ("worker 1", "worker 0", "ps 0")
        if (ps or victim != "ps 0") and (name := f"{victim} in {layout}")
    ]


#: Samples arrive so slowly that a step takes about 0.02 s: a death comes in the middle of the training.
DELAY = 0.003
SAVE = 20
TARGET = 120


def has_begun(log_dir: Path) -> bool:
    """A checkpoint was saved after some steps."""
    return any(saved_steps(log_dir)[1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ps", "flags", "victim"), cells("worker 1 in sync", "ps 0 in async", "worker 0 in collective")
)
def test_without_a_supervisor_the_survivors_name_the_dead(tmp_path, ps, flags, victim):
    log = tmp_path / "log"
    training = Training(epochs=-1, log_dir=str(log), save=SAVE, delay=DELAY)
    with job(tmp_path, 2, ps, flags, training) as running:
        running.wait_until(lambda: has_begun(log))
        time.sleep(random.uniform(0, 0.5))
        running[victim].send(signal.SIGKILL)
        survivors = [name for name in running.processes if name != victim]
        codes = running.wait(30, survivors)
        assert all(codes.values()), running.logs  # neither 0 nor None, which is one that did not end
        for name in survivors:
            assert re.search(rf"{victim} was lost: .*the process has died", running[name].log), running[name].log


def processes_of(launcher: int) -> dict[str, int]:
    """The process ids of a launcher's processes by their roles."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            words = (directory / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        flags = dict(word.partition("=")[::2] for word in words if word.startswith("--") and "=" in word)
        if parent == launcher and "--job_name" in flags:
            found[f"{flags['--job_name']} {flags['--task_index']}"] = int(directory.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("ps", "flags", "victim"), cells("worker 1 in collective"))
def test_with_the_supervisor_the_job_ends_at_its_target(tmp_path, ps, flags, victim):
    log = tmp_path / "log"
    training = Training(epochs=-1, steps=TARGET, log_dir=str(log), save=SAVE, every=1, delay=DELAY)
    command = [sys.executable, "-m", "moxing", "run", "--workers", "2", "--ps", str(ps), "--max_restarts", "3"]
    command += ["--cluster_logs", "logs", str(SCRIPT), *flags]
    environment = {**os.environ, "JOB": training.text(), "MOX_SILENT_MODE": "0"}
    output = tmp_path / "output"
    with output.open("wb") as file:
        launcher = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + DEADLINE
        while not has_begun(log):
            assert launcher.poll() is None and time.monotonic() < until, output.read_text()
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.5))
        os.kill(processes_of(launcher.pid)[victim], signal.SIGKILL)
        launcher.wait(DEADLINE)
    finally:
        # The kernel ends its processes with it.
        launcher.kill()
        launcher.wait()
    said = output.read_text()
    assert launcher.returncode == 0, said
    assert f"{victim} was killed by SIGKILL; restart 1 of 3 of the whole job" in said, said
    assert "restart 2" not in said
    trained, bias, step = weights(log)
    # Async workers may each be in a step when the target is reached.
    assert TARGET <= step <= TARGET + ("--sync_replicas=False" in flags)
    assert all(math.isfinite(value) for value in [*trained, bias])
    first, second = (tmp_path / "logs" / "worker-0.log").read_text().split("--- start 2 ---")
    steps = re.compile(r"global step: (\d+)\).*\tloss: ([0-9.]+)")
    before, after = steps.findall(first), steps.findall(second)
    assert int(after[-1][0]) >= TARGET - 1
    assert float(after[-1][1]) < 10
    repeated = int(before[-1][0]) - int(after[0][0])
    # In async the chief counts its own steps from one checkpoint to the next, while the other worker does as many.
    interval = SAVE if "--sync_replicas=False" not in flags else 2 * SAVE + 10
    assert repeated <= interval, (before[-1], after[0])
