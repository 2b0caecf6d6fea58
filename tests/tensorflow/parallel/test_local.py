"""Towers that share their variables: where they stand, and one step of them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.executor.loop.session import session_config
from moxing.tensorflow.parallel import Tower, TrainSetup
from moxing.tensorflow.parallel.local import Local
from moxing.tf1.graph.run_graph import run_graph


def built(strategy, weights=(None, None, None), targets=(1.0, 2.0, 6.0)):
    """The squared distance of a variable from another number on every tower."""
    step = tf.train.get_or_create_global_step()
    towers = []
    for index in range(strategy.num_towers):
        with strategy.tower_scope(index):
            loss = 0.5 * tf.square(tf.get_variable("w", [], initializer=tf.zeros_initializer()) - targets[index])
            towers.append(Tower([loss], [None], weights[index]))
    setup = TrainSetup(towers, [lambda: tf.train.GradientDescentOptimizer(1.0)], [], step)
    return strategy.train_op(setup).op, towers


def plain(device):
    """TensorFlow spells the same device in two ways."""
    return device.replace("/device:", "/").lower()


def devices(graph, kind):
    return [plain(operation.device) for operation in graph.get_operations() if operation.type == kind]


def one_step(strategy, train_op):
    config = session_config(strategy.devices)
    strategy.configure(config)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        session.run(strategy.sync_ops())
        session.run(train_op)
        return session.run(tf.global_variables())


@pytest.mark.parametrize(
    ("weights", "expected"), [((None, None, None), 3.0), ((2, 2, 2), 3.0), ((4, 4, 1), 2.0), ((4, 4, 0), 1.5)]
)
def test_a_step_goes_to_the_mean(weights, expected):
    with run_graph(tf.Graph()):
        strategy = Local(["/cpu:0", "/cpu:1", "/cpu:2"])
        counts = [None if weight is None else tf.constant(weight, tf.int64) for weight in weights]
        values = one_step(strategy, built(strategy, counts)[0])
        np.testing.assert_allclose(values, [1, expected])


def test_variables_are_on_the_host_and_the_work_on_the_towers():
    with run_graph(tf.Graph()) as graph:
        _, towers = built(Local(["/gpu:0", "/gpu:1"]))
        assert devices(graph, "VarHandleOp")[1:] == ["/cpu:0"]
        assert [plain(tower.losses[0].op.device) for tower in towers] == ["/gpu:0", "/gpu:1"]


def test_variables_are_where_the_flag_wants_them(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    mox.set_flag("local_parameter_device", "gpu")
    with run_graph(tf.Graph()) as graph:
        built(Local(["/gpu:0", "/gpu:1"]))
        assert devices(graph, "VarHandleOp")[1:] == ["/gpu:0"]


@pytest.mark.parametrize(
    ("flags", "variable", "loss"),
    [
        ({}, "", ""),  # TensorFlow knows best
        ({"clone_on_cpu": True}, "/cpu:0", "/cpu:0"),
        ({"local_parameter_device": "cpu"}, "/cpu:0", ""),
    ],
)
def test_one_tower(flags, variable, loss):
    for name, value in flags.items():
        mox.set_flag(name, value)
    with run_graph(tf.Graph()) as graph:
        strategy = Local(["/gpu:0"])
        train_op, towers = built(strategy)
        assert devices(graph, "VarHandleOp")[1:] == [variable]
        assert plain(towers[0].losses[0].op.device) == loss
        np.testing.assert_allclose(one_step(strategy, train_op), [1, 1])


def test_parameters_on_a_missing_gpu_are_trained_on_the_cpu_with_one_warning(caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    mox.set_flag("local_parameter_device", "gpu")
    with run_graph(tf.Graph()):
        strategy = Local(["/cpu:0", "/cpu:1"])
        np.testing.assert_allclose(one_step(strategy, built(strategy)[0]), [1, 1.5])
    assert len(caplog.records) == 1


def test_towers_with_other_losses_are_refused():
    with run_graph(tf.Graph()):
        strategy = Local(["/cpu:0"])
        with pytest.raises(ValueError):
            strategy.train_op(TrainSetup([Tower([], [])], [lambda: tf.train.GradientDescentOptimizer(1.0)], [], None))
