"""Workers that share the steps of a training: real servers, all in this process."""

from __future__ import annotations

import random
import threading

import pytest
import tensorflow.compat.v1 as tf

from moxing.cli.cluster.launcher import free_ports
from moxing.tensorflow.estimator.step_budget import StepBudget


@pytest.fixture(scope="module")
def targets():
    """The servers of a chief and two workers of a job with a ps."""
    ports = free_ports(4)
    hosts = {"chief": ports[:1], "worker": ports[1:3], "ps": ports[3:]}
    cluster = tf.train.ClusterSpec({job: [f"127.0.0.1:{port}" for port in own] for job, own in hosts.items()})
    servers = [
        tf.train.Server(cluster, job, index) for job, index in (("ps", 0), ("chief", 0), ("worker", 0), ("worker", 1))
    ]
    StepBudget.open(servers[1].target)
    return [server.target for server in servers[1:]]


class Worker:
    """One worker: its graph counts a step on the ps; with `every` only every n-th of its steps counts."""

    def __init__(self, target: str, name: str, every: int = 1) -> None:
        self.budget, self.steps, self.every = StepBudget(), 0, every
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                step = tf.get_variable(name, [], tf.int64, tf.zeros_initializer(), use_resource=True)
            self.budget.build(step)
            self.initialize, self.add, self.read = step.initializer, step.assign_add(1).op, step.read_value()
            self.session = tf.Session(target)

    def train(self, last: int, most: int) -> None:
        while True:
            try:
                claimed = self.budget.claim(self.session.run, random.randint(1, most), last)
            except tf.errors.OutOfRangeError:
                return
            assert 1 <= claimed <= most
            for _ in range(claimed):
                self.steps += 1
                if self.steps % self.every == 0:
                    self.session.run(self.add)


@pytest.mark.parametrize("every", [1, 3])
def test_the_steps_of_all_are_those_up_to_the_target(targets, every):
    workers = [Worker(target, f"step_{every}", every) for target in targets]
    workers[0].session.run(workers[0].initialize)
    threads = [threading.Thread(target=worker.train, args=(61, 9)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert workers[0].session.run(workers[0].read) == 61
    assert sum(worker.steps // every for worker in workers) == 61


def test_steps_that_are_given_back_are_for_others(targets):
    one, other = (Worker(target, "given_back") for target in targets[:2])
    one.session.run(one.initialize)
    assert one.budget.claim(one.session.run, 100, 10) == 10
    # All steps are in flight: the other would wait.
    waiting = threading.Thread(target=other.train, args=(10, 4))
    waiting.start()
    assert other.session.run(other.read) == 0
    one.budget.give_back(one.session.run)
    waiting.join(60)
    assert not waiting.is_alive()
    assert (other.steps, other.session.run(other.read)) == (10, 10)
    with pytest.raises(tf.errors.OutOfRangeError, match="reached step 10"):
        one.budget.claim(one.session.run, 1, 10)
