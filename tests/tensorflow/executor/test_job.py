"""The job of a run: a process that runs alone, and two workers whose servers are real."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.cli.cluster.launcher import free_ports
from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import Role
from moxing.tensorflow.cluster.server import Server
from moxing.tensorflow.cluster.waiting import PeerLostError
from moxing.tensorflow.executor import job as jobs
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.job import Job, join_job
from moxing.tensorflow.executor.specs import ModeKeys


def test_a_process_that_runs_alone():
    job = Job(Role())
    assert (job.target, job.is_cluster, job.run_number) == ("", False, 0)
    assert job.broadcast_start(3, START) == (3, START)
    assert job.any_worker("x", True) is True and job.any_worker("x", False) is False
    assert job.all_gather("x", 5) == [5]
    job.announce({"a": 1})
    assert list(job.announcements()) == []
    assert job.connect_ring() is None
    job.stop_all()
    assert job.stop_requested() is False
    job.wait_for_variables()
    job.wait_for_last_steps()
    with job.watch_peers(None):
        pass


@pytest.mark.parametrize("mode", list(ModeKeys))
def test_without_a_cluster_every_mode_runs(mode):
    job = join_job(mode)
    assert not job.is_cluster and job.role == Role()


@pytest.mark.parametrize(("name", "index", "part"), [("worker", 0, True), ("worker", 1, False), ("ps", 0, False)])
def test_in_a_cluster_only_the_chief_evaluates(name, index, part):
    flags = {"worker_hosts": "a:1,b:1", "ps_hosts": "c:1", "job_name": name, "task_index": index}
    for flag, value in flags.items():
        FLAGS.set(flag, value)
    job = join_job(ModeKeys.EVAL)
    assert (job is not None) is part
    assert job is None or not job.is_cluster


@pytest.fixture(scope="module")
def servers():
    hosts = tuple(f"127.0.0.1:{port}" for port in free_ports(2))
    started = [Server(Role("worker", index, hosts), tf.ConfigProto()) for index in range(2)]
    together(*(server.wait_for_peers for server in started))
    yield started
    for server in started:
        server._watch.stop()


@pytest.fixture
def pair(servers):
    number = next(jobs._run_numbers)
    return [Job(server.role, server, number) for server in servers]


def together(*functions):
    """The results of functions that wait for each other."""
    results = {}
    threads = [
        threading.Thread(target=lambda index=index, call=call: results.update({index: call()}), daemon=True)
        for index, call in enumerate(functions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [results[index] for index in range(len(functions))]


def test_the_chiefs_start_is_that_of_all(pair):
    chief, other = pair
    position = Position(seed=7, samples=(4, 5))
    found = together(lambda: chief.broadcast_start(7, position), lambda: other.broadcast_start(8, START))
    assert found == [(7, position)] * 2


def test_values_of_all_workers(pair):
    chief, other = pair
    assert together(lambda: chief.all_gather("x", [1]), lambda: other.all_gather("x", "b")) == [[[1], "b"]] * 2
    assert together(lambda: chief.any_worker("y", False), lambda: other.any_worker("y", True)) == [True] * 2


def test_announcements_and_stops(pair):
    chief, other = pair
    chief.announce({"stop": 1})
    chief.announce({"rate": 0.5})
    assert list(other.announcements()) == [{"stop": 1}, {"rate": 0.5}]
    assert list(other.announcements()) == []
    assert not chief.stop_requested()
    other.stop_all()
    assert chief.stop_requested() and not other.stop_requested()


def test_barriers(pair):
    chief, other = pair
    together(chief.wait_for_variables, other.wait_for_variables)
    together(chief.wait_for_last_steps, other.wait_for_last_steps)


def test_a_ring(pair):
    rings = together(*(job.connect_ring for job in pair))
    values = [np.float32([1, 2]), np.float32([3, 4])]
    sums = together(*(lambda index=index: rings[index].all_reduce(values[index]) for index in range(2)))
    assert [total.tolist() for total in sums] == [[4, 6]] * 2
    for ring in rings:
        ring.close()


def test_a_broken_connection_names_the_peer(pair, monkeypatch):
    chief, _ = pair
    monkeypatch.setattr(jobs, "_SECONDS_TO_NAME_PEER", 0.0)
    error = RuntimeError("RingBrokenError: the connection of worker 0 to worker 1 has broken.")
    with pytest.raises(PeerLostError, match=r"connection of worker 0 to worker 1 \(127.0.0.1:\d+\) has broken"):
        with chief.watch_peers(None):
            raise error
    with pytest.raises(RuntimeError, match="something else"), chief.watch_peers(None):
        raise RuntimeError("something else")
