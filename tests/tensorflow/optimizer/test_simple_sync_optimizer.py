"""SimpleSyncOptimizer, and batch_gradients between asynchronous workers: real servers, a thread for every worker."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.cli.cluster.launcher import free_ports
from moxing.tensorflow.optimizer.simple_sync_optimizer import SimpleSyncOptimizer
from moxing.tensorflow.optimizer.wrappers.factory import get_optimizer_wrapper_fn
from moxing.tensorflow.optimizer.wrappers.wrapper import leave_op

WORKERS, STEPS, RATE = 2, 8, 0.125
GRADIENTS = np.random.RandomState(1).randn(WORKERS, STEPS, 3).astype(np.float32)


@pytest.fixture(scope="module")
def servers():
    ports = free_ports(WORKERS + 1)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    spec = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    return addresses[1:], [
        tf.train.Server(spec, job_name=job, task_index=index, start=True)
        for job, index in [("ps", 0), *(("worker", index) for index in range(WORKERS))]
    ]


class Worker:
    """One worker's graph and session."""

    def __init__(self, index, servers, optimizer_fn, name):
        hosts, running = servers
        mox.set_flag("worker_hosts", ",".join(hosts))
        mox.set_flag("sync_replicas", False)
        mox.set_flag("task_index", index)
        self.graph = tf.Graph()

        def place(operation):
            own = f"/job:worker/task:{index}/cpu:0"
            return operation.device or ("/job:ps/task:0/cpu:0" if operation.type == "VarHandleOp" else own)

        with self.graph.as_default(), tf.device(place):
            self.w = tf.get_variable(f"{name}/w", [3], initializer=tf.zeros_initializer(), use_resource=True)
            self.step = tf.get_variable(f"{name}/step", [], tf.int64, tf.zeros_initializer(), use_resource=True)
            self.gradient = tf.placeholder(tf.float32, [3])
            optimizer = optimizer_fn()
            self.train = optimizer.apply_gradients([(self.gradient, self.w)], global_step=self.step)
            self.leave = leave_op([optimizer])
            self.initializers = [variable.initializer for variable in tf.global_variables()]
            local = tf.local_variables_initializer()
        self.locals = {variable.op.name: variable.device for variable in self.graph.get_collection("local_variables")}
        self.session = tf.Session(running[index + 1].target, graph=self.graph)
        if index == 0:
            self.session.run(self.initializers)
        self.session.run(local)

    def run(self, gradients):
        for gradient in gradients:
            self.session.run(self.train, {self.gradient: gradient})


def together(workers, jobs):
    """Runs a function for every worker in a thread of its own and returns the errors."""
    errors = [None] * len(workers)

    def work(index):
        try:
            jobs[index](workers[index])
        except tf.errors.OpError as error:
            errors[index] = error

    threads = [threading.Thread(target=work, args=[index], daemon=True) for index in range(len(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), f"a worker waits for ever: {errors}"
    return errors


def test_the_mean_of_all_workers_is_applied_once_a_step(servers, monkeypatch):
    def worker(index):
        # Both processes would count alike; here there is one.
        monkeypatch.setattr(SimpleSyncOptimizer, "_numbers", iter([1000]))
        fn = lambda: SimpleSyncOptimizer(tf.train.MomentumOptimizer(RATE, 0.5), WORKERS, index)  # noqa: E731
        return Worker(index, servers, fn, "sync")

    workers = [worker(index) for index in range(WORKERS)]
    errors = together(workers, [lambda worker, own=own: worker.run(own) for own in GRADIENTS])
    assert errors == [None, None]
    weights, speed = np.zeros(3), np.zeros(3)
    for gradient in GRADIENTS.mean(0):
        speed = 0.5 * speed + gradient
        weights = weights - RATE * speed
    np.testing.assert_allclose(workers[1].session.run(workers[1].w), weights, rtol=1e-5)
    assert workers[1].session.run(workers[1].step) == STEPS


@pytest.mark.parametrize("first", range(WORKERS))
def test_a_worker_that_ends_ends_the_data_of_the_others(first, servers, monkeypatch):
    def worker(index):
        monkeypatch.setattr(SimpleSyncOptimizer, "_numbers", iter([2000 + first]))
        fn = lambda: SimpleSyncOptimizer(tf.train.GradientDescentOptimizer(RATE), WORKERS, index)  # noqa: E731
        return Worker(index, servers, fn, f"ends_{first}")

    def job(index):
        def work(worker):
            worker.run(GRADIENTS[index][: 3 if index == first else STEPS])
            worker.session.run(worker.leave)

        return work

    workers = [worker(index) for index in range(WORKERS)]
    errors = together(workers, [job(index) for index in range(WORKERS)])
    assert [type(error) for index, error in enumerate(errors) if index != first] == [tf.errors.OutOfRangeError]
    assert errors[first] is None
    expected = -RATE * GRADIENTS[:, :3].mean(0).sum(0)
    np.testing.assert_allclose(workers[0].session.run(workers[0].w), expected, rtol=1e-5)


@pytest.mark.parametrize("sync", [False, True])
def test_batch_gradients_of_asynchronous_workers(sync, servers, monkeypatch):
    def worker(index):
        monkeypatch.setattr(SimpleSyncOptimizer, "_numbers", iter([3000 + sync]))
        sgd = tf.train.GradientDescentOptimizer
        fn = get_optimizer_wrapper_fn("batch_gradients", lambda: sgd(RATE), num_batches=4, sync_on_apply=sync)
        return Worker(index, servers, fn, f"batch_{sync}")

    workers = [worker(index) for index in range(WORKERS)]
    for index, one in enumerate(workers):
        # What is added up stays in the worker.
        assert set(one.locals.values()) == {f"/job:worker/task:{index}/device:CPU:0"}
        one.run(GRADIENTS[index][:3])
    assert workers[0].session.run(workers[0].w).tolist() == [0, 0, 0]
    errors = together(workers, [lambda worker, own=own: worker.run(own[3:]) for own in GRADIENTS])
    assert errors == [None, None]
    # Applied together it is the mean of the workers, each by itself the sum.
    total = GRADIENTS.reshape([WORKERS, 2, 4, 3]).mean(2).sum(1)
    expected = -RATE * (total.mean(0) if sync else total.sum(0))
    np.testing.assert_allclose(workers[0].session.run(workers[0].w), expected, rtol=1e-5)
    assert workers[0].session.run(workers[0].step) == WORKERS * STEPS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_workers": 0}, r"SimpleSyncOptimizer\(num_workers=0\)"),
        ({"num_workers": 2, "task_index": 2}, r"\(task_index=2\): expected one of num_workers=2, 0 to 1"),
        ({"task_index": None}, r"\(task_index=None\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        SimpleSyncOptimizer(tf.train.GradientDescentOptimizer(1.0), **arguments)
