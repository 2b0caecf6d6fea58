"""Jobs of real processes on free ports: started, waited for with a deadline, and ended whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import STDOUT

import tensorflow.compat.v1 as tf
from linear_job import Training

from helpers import warm
from moxing.cli.cluster.launcher import free_ports

#: What the processes of jobs run.
PROGRAMS = Path(__file__).parent / "programs"
SCRIPT = PROGRAMS / "linear_job.py"

#: No claim about speed: what hangs must end some time.
DEADLINE = 150.0


class Process:
    """One process of a job; `code` is its exit code as a shell gives it."""

    def __init__(self, name: str, pid: int, log: Path, look: Callable[[], int | None]) -> None:
        self.name, self.pid, self._log, self._look = name, pid, log, look
        self.code: int | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def result(self) -> dict:
        """What the script's last line tells."""
        line = next(line for line in reversed(self.log.splitlines()) if line.startswith("RESULT "))
        return json.loads(line.removeprefix("RESULT "))

    @property
    def losses(self) -> dict[int, float]:
        """The printed losses by the number of the global step."""
        return {int(step): float(loss) for step, loss in re.findall(r"global step: (\d+)\).*\tloss: (\S+)", self.log)}

    def has_ended(self) -> bool:
        if self.code is None:
            self.code = self._look()
        return self.code is not None

    def send(self, number: int) -> None:
        if not self.has_ended():
            os.kill(self.pid, number)


class Job:
    """Processes by their names, such as `worker 0`."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self.processes = {process.name: process for process in processes}

    def __getitem__(self, name: str) -> Process:
        return self.processes[name]

    @property
    def codes(self) -> dict[str, int | None]:
        return {process.name: process.code for process in self.processes.values()}

    @property
    def logs(self) -> str:
        return "\n".join(f"=== {process.name}: {process.code}\n{process.log}" for process in self.processes.values())

    def wait(self, deadline: float = DEADLINE, among: Sequence[str] = ()) -> dict[str, int | None]:
        """Waits for the end of all, or of those named; returns the exit codes, None for one that did not end."""
        waited = [self.processes[name] for name in among or self.processes]
        until = time.monotonic() + deadline
        while [process for process in waited if not process.has_ended()] and time.monotonic() < until:
            time.sleep(0.05)
        return {process.name: process.code for process in waited}

    def wait_until(self, condition: Callable[[], bool], deadline: float = DEADLINE) -> None:
        """Waits until something is true, which it must become before a process of the job ends."""
        until = time.monotonic() + deadline
        while not condition():
            ended = [process.name for process in self.processes.values() if process.has_ended()]
            if ended or time.monotonic() > until:
                raise AssertionError(f"waited in vain, {ended} ended\n{self.logs}")
            time.sleep(0.02)

    def kill(self) -> None:
        for process in self.processes.values():
            process.send(signal.SIGKILL)
        self.wait(20)


def start(
    directory: Path,
    name: str,
    flags: Sequence[str] = (),
    script: Path = SCRIPT,
    environment: dict | None = None,
    network: str | None = None,
) -> Process:
    """Starts one process, in the network namespace of the file `network` if there is one."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name.replace(' ', '-')}.log"
    variables = {**os.environ, "PYTHONPATH": str(PROGRAMS), "MOX_SILENT_MODE": "0", **(environment or {})}
    surroundings = warm.Surroundings(directory, variables, network)
    process = warm.WarmProcess(warm.Program("script", str(script), tuple(flags)), surroundings, None, log, STDOUT)

    def look() -> int | None:
        code = process.poll()
        return code if code is None or code >= 0 else 128 - code

    return Process(name, process.pid, log, look)


@contextlib.contextmanager
def job(
    directory: Path,
    workers: int = 2,
    ps: int = 0,
    flags: Sequence[str] = (),
    training: Training | dict | None = None,
    script: Path = SCRIPT,
) -> Iterator[Job]:
    """A job by its flags, as a user starts it on several machines; what still runs at the end is killed.

    Args:
      directory: of the logs.
      workers: how many.
      ps: how many parameter servers.
      flags: of all processes.
      training: what the script trains.
      script: `linear_job.py`, or another one.
    """
    ports = free_ports(workers + ps)
    hosts = {"ps": ports[:ps], "worker": ports[ps:]}
    cluster = [f"--{job}_hosts={','.join(f'127.0.0.1:{port}' for port in own)}" for job, own in hosts.items() if own]
    environment = _told(training)
    started = Job([])
    try:
        for kind, own in hosts.items():
            for index in range(len(own)):
                words = [*flags, *cluster, f"--job_name={kind}", f"--task_index={index}"]
                process = start(directory, f"{kind} {index}", words, script, environment)
                started.processes[process.name] = process
        yield started
    finally:
        started.kill()


def finished(directory: Path, *arguments, **named) -> Job:
    """A job that has ended well."""
    with job(directory, *arguments, **named) as done:
        codes = done.wait()
        assert set(codes.values()) == {0}, done.logs
    return done


def _told(training: Training | dict | None) -> dict[str, str]:
    """Tells a script what to train."""
    if training is None:
        return {}
    return {"JOB": json.dumps(training) if isinstance(training, dict) else training.text()}


def alone(directory: Path, training: Training | dict, flags: Sequence[str] = (), script: Path = SCRIPT) -> Process:
    """The same training in one process, which has ended well."""
    process = start(directory, "alone", flags, script, _told(training))
    ended = Job([process])
    try:
        ended.wait()
    finally:
        ended.kill()
    assert process.code == 0, process.log
    return process


def ended(process: Process) -> str:
    """The log of one process, which must fail by itself."""
    running = Job([process])
    try:
        running.wait(60)
    finally:
        running.kill()
    assert process.code == 1, process.log
    return process.log


def weights(log_dir: Path) -> tuple[list[float], float, int]:
    """Weights, bias and step of the last checkpoint."""
    reader = tf.train.load_checkpoint(str(log_dir))
    return (
        reader.get_tensor("w")[:, 0].tolist(),
        float(reader.get_tensor("b")),
        int(reader.get_tensor("global_step")),
    )


def saved_steps(log_dir: Path) -> list[int]:
    """The steps of the checkpoints that are there."""
    return sorted(int(path.name.split("-")[1].split(".")[0]) for path in log_dir.glob("model.ckpt-*.index"))
