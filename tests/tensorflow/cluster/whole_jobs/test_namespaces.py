"""Hosts with addresses of their own, in network namespaces with a cable between them that can be cut.

The cut is made at the far end: some machines' gateways accept a connection to any address, and nothing here may be
routed to them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from jobs import Job, ended, saved_steps, start
from linear_job import Training

from moxing.cli.cluster.launcher import free_ports

ADDRESSES = ("192.168.213.1", "192.168.213.2")


class Hosts:
    """Two network namespaces, joined by a pair of virtual interfaces and by nothing else."""

    def __init__(self) -> None:
        self.names = [f"moxing-test-{os.getpid()}-{index}" for index in range(2)]
        self._cables = [f"mx{os.getpid() % 10**7}-{index}" for index in range(2)]

    def make(self) -> None:
        for name in self.names:
            _ip("netns", "add", name)
        # Made inside: the machine's own network never sees it.
        ends = ["type", "veth", "peer", "name", self._cables[1], "netns", self.names[1]]
        _ip("-n", self.names[0], "link", "add", self._cables[0], *ends)
        for name, cable, address in zip(self.names, self._cables, ADDRESSES, strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", cable)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", cable, "up")

    def remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self) -> None:
        """Takes the second host off the cable."""
        _ip("-n", self.names[1], "link", "set", self._cables[1], "down")

    def mend(self) -> None:
        """Puts it back."""
        _ip("-n", self.names[1], "link", "set", self._cables[1], "up")

    def path(self, host: int) -> str:
        return f"/run/netns/{self.names[host]}"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@pytest.fixture
def hosts():
    if shutil.which("ip") is None:
        pytest.skip("there is no command `ip` to make network namespaces with")
    made = Hosts()
    try:
        try:
            made.make()
        except OSError as error:
            pytest.skip(f"this machine forbids network namespaces: {error}")
        yield made
    finally:
        made.remove()


def start_job(directory: Path, hosts: Hosts, ps: int, training: Training) -> Job:
    """Worker 0, and the ps if there is one, on the first host; worker 1 on the second."""
    ports = free_ports(3)
    flags = [f"--worker_hosts={ADDRESSES[0]}:{ports[0]},{ADDRESSES[1]}:{ports[1]}"]
    if ps:
        flags.append(f"--ps_hosts={ADDRESSES[0]}:{ports[2]}")
    roles = [("worker", 0, 0), ("worker", 1, 1), *([("ps", 0, 0)] if ps else [])]
    environment = {"JOB": training.text()}
    return Job(
        [
            start(
                directory, f"{kind} {index}", [*flags, f"--job_name={kind}", f"--task_index={index}"],
                environment=environment, network=hosts.path(host),
            )
            for kind, index, host in roles
        ]
    )  # fmt: skip


#: What the log of a process says that ends because another one is out of reach.
LOST = re.compile(
    r"(?:(\w+ \d) was lost: \S+ has not answered for \d+ s"
    r"|(\w+ \d) was lost: its port \S+ refuses connections"
    r"|The connection of \w+ \d to (\w+ \d) \(\S+\) has broken)"
)


def named(process) -> set[str]:
    """Whom the log of a process says to have lost."""
    return {name for names in LOST.findall(process.log) for name in names if name}


@pytest.mark.slow
def test_a_cable_that_is_cut(tmp_path, hosts):
    """Cut for 5 s: the jobs wait and go on. For good: all processes end and name a process that they do not reach.

    20 s are what gRPC's servers wait for an answer to what they have sent: a job goes on or ends with such an error,
    as it happens. What it does not do is hang.
    """
    logs = {ps: tmp_path / f"log {ps}" for ps in (0, 1)}
    jobs: dict[int, Job] = {}

    def wait_for_steps(ps: int) -> None:
        before = saved_steps(logs[ps])[-1]
        jobs[ps].wait_until(lambda: saved_steps(logs[ps])[-1] > before + 20, 90)

    def all_end_with_a_name(ps: int) -> None:
        codes = jobs[ps].wait(60)
        assert all(codes.values()), jobs[ps].logs
        for process in jobs[ps].processes.values():
            assert named(process), process.log

    try:
        for ps, log in logs.items():
            training = Training(epochs=-1, log_dir=str(log), save=20, delay=0.002)
            jobs[ps] = start_job(tmp_path / str(ps), hosts, ps, training)
        for ps, log in logs.items():
            jobs[ps].wait_until(lambda log=log: len(saved_steps(log)) > 1)
        for seconds in (5, 20):
            hosts.cut()
            time.sleep(seconds)
            hosts.mend()
            for ps in list(logs):
                try:
                    wait_for_steps(ps)
                except AssertionError:
                    if seconds == 5:
                        raise
                    all_end_with_a_name(ps)
                    del logs[ps]
        hosts.cut()
        for ps in logs:
            all_end_with_a_name(ps)
            assert named(jobs[ps]["worker 0"]) == {"worker 1"}
    finally:
        for one in jobs.values():
            one.kill()


@pytest.mark.slow
def test_a_worker_with_the_index_of_another_host(tmp_path, hosts):
    """It says so at once when it cannot reach the others: both hosts are told that they are worker 1."""
    ports = free_ports(2)
    flags = [f"--worker_hosts={ADDRESSES[0]}:{ports[0]},{ADDRESSES[1]}:{ports[1]}", "--job_name=worker"]
    words = [*flags, "--task_index=1", "--session_timeout=2"]
    process = start(tmp_path, "worker 1", words, environment={"JOB": Training().text()}, network=hosts.path(0))
    log = ended(process)
    assert "worker 0" in log
    assert f"--task_index makes it worker 1 at {ADDRESSES[1]}:{ports[1]}" in log, log
