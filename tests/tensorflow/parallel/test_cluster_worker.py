"""What the strategies of a cluster's workers share. No processes here."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster import Role
from moxing.tensorflow.parallel import StrategyContext, Tower
from moxing.tensorflow.parallel.cluster_worker import ClusterWorker, run_one_of, run_variable
from moxing.tf1.graph.run_graph import run_graph


def test_created_from_a_role():
    role = Role("worker", 2, ("a:1", "b:1", "c:1"))
    worker = ClusterWorker.create(StrategyContext("x", ["/cpu:0"], role, run=4))
    assert (worker.num_workers, worker.worker_index, worker.is_chief) == (3, 2, False)
    assert (worker.task, worker.shared) == ("/job:worker/task:2", "moxing/run_4")


def test_local_variables_are_in_the_worker():
    worker = ClusterWorker(["/cpu:0"], 2, 1, 1)
    with run_graph(tf.Graph()), tf.variable_creator_scope(worker.create_variable):
        local = tf.get_variable("local", [], collections=[tf.GraphKeys.LOCAL_VARIABLES])
        shared = tf.get_variable("shared", [])
    assert tf.DeviceSpec.from_string(local.device).task == 1
    assert not shared.device


def test_the_weight_of_a_worker():
    with tf.Graph().as_default(), tf.Session() as session:
        towers = [Tower([], [], tf.constant(3, tf.int64)), Tower([], [], tf.constant(4, tf.int64))]
        assert session.run(ClusterWorker.total_weight(towers)) == 7
    assert ClusterWorker.total_weight([Tower([], [])]) is None


def test_a_variable_of_the_run_is_in_no_checkpoint():
    with run_graph(tf.Graph()), tf.Session() as session:
        first, second = run_variable("moxing/x"), run_variable("moxing/x")
        assert first is second
        assert first not in tf.global_variables() + tf.local_variables()
        session.run(first.initializer)
        assert session.run(first) == 0


@pytest.mark.parametrize("condition", [True, False])
def test_only_one_branch_runs(condition):
    with run_graph(tf.Graph()), tf.Session() as session:
        v, w = (tf.get_variable(name, initializer=0) for name in "vw")
        op = run_one_of(tf.constant(condition), lambda: tf.assign_add(v, 1).op, lambda: tf.assign_add(w, 1).op)
        session.run(tf.global_variables_initializer())
        session.run(op)
        assert session.run([v, w]) == [condition, not condition]
