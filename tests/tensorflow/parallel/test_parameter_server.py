"""The graph of a worker with ps: where everything stands, and by which names the workers meet. No processes here."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.parallel import Tower, TrainSetup, parameter_server
from moxing.tensorflow.parallel.parameter_server import ParameterServer
from moxing.tf1.graph.run_graph import run_graph

#: Kilobytes of the variables, in the order in which they are made.
SIZES = (400, 100, 200, 100, 60, 300, 20, 10, 10, 40)


def plain(device):
    """TensorFlow spells the same device in two ways."""
    return device.replace("/device:", "/").lower()


def server_of(operation):
    """The number of the ps that an operation stands on, None for the worker."""
    spec = tf.DeviceSpec.from_string(operation.device)
    return spec.task if spec.job == "ps" else None


def built(strategy, sizes=SIZES, optimizer=None):
    """The squared sum of some variables as the loss of every tower; returns the step."""
    with strategy.scope():
        step = tf.train.get_or_create_global_step()
        towers = []
        for index in range(strategy.num_towers):
            with strategy.tower_scope(index):
                weights = [tf.get_variable(f"w{place}", [size << 8]) for place, size in enumerate(sizes)]
                loss = tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
                towers.append(Tower([loss], [None], tf.constant(4, tf.int64)))
        optimizer = optimizer or (lambda: tf.train.MomentumOptimizer(0.1, 0.9))
        train = strategy.train_op(TrainSetup(towers, [optimizer], [], step))
    return train, towers


def worker(index=0, servers=2, synchronous=True, towers=1, run=1):
    devices = [f"/cpu:{tower}" for tower in range(towers)]
    return ParameterServer(devices, 2, index, run, servers=servers, synchronous=synchronous)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_variables_are_spread_by_their_bytes(servers):
    with run_graph(tf.Graph()):
        built(worker(servers=servers))
        held = [0] * servers
        for variable in tf.trainable_variables():
            held[server_of(variable.op)] += variable.shape.num_elements() * 4
        # No more than the largest variable apart.
        assert max(held) - min(held) <= max(SIZES) << 10
        assert min(held) >= 0.6 * max(held)


def test_all_workers_put_a_variable_on_the_same_ps():
    places = []
    for index in range(2):
        with run_graph(tf.Graph()):
            built(worker(index))
            places.append({variable.name: variable.device for variable in tf.global_variables()})
    for name in set(places[0]) & set(places[1]):
        assert places[0][name] == places[1][name], name
    assert {name for name in places[1] if "Momentum" not in name} == {
        "global_step:0", *(f"w{place}:0" for place in range(len(SIZES)))
    }  # fmt: skip


@pytest.mark.parametrize("towers", [1, 2])
def test_what_belongs_to_a_variable_stands_beside_it_and_the_work_on_the_worker(towers):
    with run_graph(tf.Graph()) as graph:
        _, built_towers = built(worker(towers=towers))
        places = {variable.op.name: server_of(variable.op) for variable in tf.global_variables()}
        slots = {name: place for name, place in places.items() if name.endswith("/Momentum")}
        assert len(slots) == len(SIZES)
        for name, place in slots.items():
            assert place == places[name.removesuffix("/Momentum")]
        # The accumulators of the gradients: as many on a ps as it has variables, and one for the weight.
        accumulators = [op for op in graph.get_operations() if op.type == "ResourceConditionalAccumulator"]
        expected = sorted([places[f"w{place}"] for place in range(len(SIZES))] + [places["global_step"]])
        assert sorted(server_of(op) for op in accumulators) == expected
        for index, tower in enumerate(built_towers):
            assert plain(tower.losses[0].op.device) == f"/job:worker/task:0/cpu:{index}"
        applied = [op for op in graph.get_operations() if op.type == "ResourceApplyMomentum"]
        assert not applied  # the updates are in the branch of a cond


@pytest.mark.slow
def test_workers_meet_under_the_same_names_and_runs_under_different_ones():
    def names(index, run):
        with run_graph(tf.Graph()) as graph:
            built(worker(index, run=run))
            kinds = ("ResourceConditionalAccumulator", "FIFOQueueV2")
            operations = [op for op in graph.get_operations() if op.type in kinds]
            return {(op.get_attr("shared_name"), server_of(op)) for op in operations}

    assert names(0, 1) == names(1, 1)
    assert not {name for name, _ in names(0, 1)} & {name for name, _ in names(0, 2)}
    # One queue of tokens a worker, one accumulator a variable, and one for the weight.
    assert len(names(0, 1)) == 2 + len(SIZES) + 1


def test_only_the_chief_applies():
    def takes(index):
        with run_graph(tf.Graph()) as graph:
            built(worker(index))
            return sum(op.type == "ResourceAccumulatorTakeGradient" for op in graph.get_operations())

    assert (takes(0), takes(1)) == (len(SIZES) + 1, 0)
    assert worker(0).owns_variables and not worker(1).owns_variables


@pytest.mark.parametrize(("index", "flag", "counts"), [(0, False, 1), (1, False, 1), (0, True, 1), (1, True, 0)])
def test_async_workers_apply_their_own_and_count(index, flag, counts):
    mox.set_flag("chief_inc_global_step", flag)
    with run_graph(tf.Graph()) as graph:
        strategy = worker(index, synchronous=False)
        train, _ = built(strategy, optimizer=lambda: tf.train.GradientDescentOptimizer(0.1))
        types = [op.type for op in graph.get_operations()]
        assert types.count("ResourceApplyGradientDescent") == len(SIZES)
        assert "ResourceConditionalAccumulator" not in types
        step = tf.train.get_global_step()
        counted = [op for op in graph.get_operations() if op.type == "AssignAddVariableOp"]
        assert sum(op.inputs[0] is step.handle for op in counted) == counts
        assert train.halt is None and train.reached is not None


def test_large_variables_are_spread_over_all_ps(monkeypatch):
    monkeypatch.setattr(parameter_server, "_LARGE_BYTES", 100 << 10)
    with run_graph(tf.Graph()):
        strategy = worker()
        with strategy.scope(), strategy.tower_scope(0):
            large = tf.get_variable("large", [1001, 60])
            small = tf.get_variable("small", [10, 60])
            flat = tf.get_variable("flat", [1, 60000])
        parts = list(large)
        assert [server_of(part.op) for part in parts] in ([0, 1], [1, 0])
        assert [part.shape.as_list() for part in parts] == [[501, 60], [500, 60]]
        assert not isinstance(small, type(large)) and not isinstance(flat, type(large))
        # A checkpoint knows it by one name and one shape.
        assert {part._save_slice_info.full_name for part in parts} == {"large"}
        assert {tuple(part._save_slice_info.full_shape) for part in parts} == {(1001, 60)}


def test_a_worker_is_not_disturbed_by_the_others():
    config = tf.ConfigProto()
    worker(1).configure(config)
    assert list(config.device_filters) == ["/job:ps", "/job:worker/task:1"]


def test_variables_of_metrics_are_each_workers_own():
    with run_graph(tf.Graph()):
        strategy = worker(1)
        with strategy.scope(), strategy.tower_scope(0):
            tf.metrics.mean(np.float32(1.0))
            with strategy.local_device():
                own = tf.get_variable("own", [])
        places = {plain(variable.device) for variable in tf.local_variables()}
        assert places == {"/job:worker/task:1/cpu:0"}
        assert plain(own.device) == "/job:worker/task:1/cpu:0"
