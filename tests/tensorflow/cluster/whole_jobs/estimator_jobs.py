"""Jobs of an Estimator, each process started as `TF_CONFIG=... moxing run estimator_job.py`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import STDOUT

import tensorflow.compat.v1 as tf
from jobs import PROGRAMS, Job, Process

from helpers import warm
from helpers.launcher import MAIN
from moxing.cli.cluster.launcher import free_ports

SCRIPT = PROGRAMS / "estimator_job.py"
#: A chief, a worker and a ps, by the names that their messages use, with their tasks in TF_CONFIG.
TASKS = {"worker 0": ("chief", 0), "worker 1": ("worker", 0), "ps 0": ("ps", 0)}
EVALUATOR = {"evaluator 0": ("evaluator", 0)}


def start(directory: Path, name: str, environment: dict[str, str], words: Sequence[str] = (SCRIPT,)) -> Process:
    """Starts `moxing run` with these words."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name.replace(' ', '-')}.log"
    variables = {**os.environ, "MOX_SILENT_MODE": "0", **environment}
    program = warm.Program("moxing", MAIN, ("run", *map(str, words)))
    process = warm.WarmProcess(program, warm.Surroundings(directory, variables), None, log, STDOUT)

    def look() -> int | None:
        code = process.poll()
        return code if code is None or code >= 0 else 128 - code

    return Process(name, process.pid, log, look)


def told(directory: Path, **training: object) -> dict[str, str]:
    """Tells the script what to train, in `directory / "model"`."""
    return {"JOB": json.dumps({"model_dir": str(directory / "model"), **training})}


@contextlib.contextmanager
def job(directory: Path, evaluator: bool = False, supervised: bool = False, **training: object) -> Iterator[Job]:
    """A chief, a worker, a ps and perhaps an evaluator; what still runs at the end is killed.

    Args:
      directory: of the logs and the model.
      evaluator: whether there is one.
      supervised: whether the processes believe that `moxing run --workers` has started them.
      training: what the script trains.
    """
    tasks = {**TASKS, **(EVALUATOR if evaluator else {})}
    addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
    cluster = {job: [address] for job, address in zip(("chief", "worker", "ps"), addresses, strict=True)}
    started = Job([])
    try:
        for name, (kind, index) in tasks.items():
            config = {"cluster": cluster, "task": {"type": kind, "index": index}}
            environment = {"TF_CONFIG": json.dumps(config), **told(directory, **training)}
            environment |= {"MOXING_SUPERVISED": "1"} if supervised else {}
            started.processes[name] = start(directory, name, environment)
        yield started
    finally:
        started.kill()


def saved_step(directory: Path) -> int:
    """The step of the last checkpoint."""
    return int(tf.train.load_checkpoint(str(directory / "model")).get_tensor("global_step"))


def saved_steps(directory: Path) -> list[int]:
    """The steps of the checkpoints that are there."""
    return sorted(int(path.stem.split("-")[1]) for path in (directory / "model").glob("model.ckpt-*.index"))
