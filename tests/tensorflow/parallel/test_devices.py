"""Where towers and variables stand, on machines with GPUs and without."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.parallel.devices import device_function, parameter_device, tower_devices
from moxing.tf1.graph.run_graph import run_graph


@pytest.fixture(autouse=True)
def warnings(caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    return lambda: [record.getMessage() for record in caplog.records]


def machine_with(monkeypatch, gpus):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"{kind}:{index}" for index in range(gpus)])


@pytest.mark.parametrize(
    ("gpus", "wanted", "devices"),
    [
        (0, 1, ["/cpu:0"]),
        (1, 1, ["/gpu:0"]),
        (8, 2, ["/gpu:0", "/gpu:1"]),
        (4, 4, ["/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3"]),
    ],
)
def test_a_device_for_every_tower(gpus, wanted, devices, monkeypatch, warnings):
    machine_with(monkeypatch, gpus)
    mox.set_flag("num_gpus", wanted)
    assert tower_devices() == devices
    assert not warnings()


@pytest.mark.parametrize("gpus", [0, 1, 3])
def test_too_few_gpus(gpus, monkeypatch, warnings):
    machine_with(monkeypatch, gpus)
    mox.set_flag("num_gpus", 4)
    assert tower_devices() == ["/cpu:0", "/cpu:1", "/cpu:2", "/cpu:3"]
    (warning,) = warnings()
    assert warning.startswith(f"--num_gpus=4, but this machine has {gpus}: the 4 towers")


def test_clone_on_cpu_needs_no_warning(monkeypatch, warnings):
    machine_with(monkeypatch, 2)
    mox.set_flag("num_gpus", 3)
    mox.set_flag("clone_on_cpu", True)
    assert tower_devices() == ["/cpu:0", "/cpu:1", "/cpu:2"]
    assert not warnings()


@pytest.mark.parametrize("wanted", [0, -2])
def test_a_number_that_is_none(wanted):
    mox.set_flag("num_gpus", wanted)
    with pytest.raises(ValueError, match=f"--num_gpus={wanted}: expected 1 or more; on a CPU leave the flag out"):
        tower_devices()


def test_more_gpus_than_a_machine_has():
    mox.set_flag("num_gpus", 10**9)
    with pytest.raises(ValueError, match="--num_gpus=1000000000: expected at most 1,024"):
        tower_devices()


@pytest.mark.parametrize(
    ("gpus", "wanted", "device"), [(2, None, None), (2, "cpu", "cpu"), (2, "gpu", "gpu"), (0, "cpu", "cpu")]
)
def test_parameter_device(gpus, wanted, device, monkeypatch, warnings):
    machine_with(monkeypatch, gpus)
    mox.set_flag("local_parameter_device", wanted)
    assert parameter_device() == device
    assert not warnings()


def test_parameters_on_a_gpu_that_is_not_there(warnings):
    mox.set_flag("local_parameter_device", "gpu")
    assert parameter_device() == "cpu"
    assert warnings() == ["--local_parameter_device=gpu, but this machine has no GPU: the variables are on the CPU."]


def plain(device):
    """TensorFlow spells the same device in two ways."""
    return device.replace("/device:", "/").lower()


def test_a_device_that_model_fn_asks_for_is_kept():
    with run_graph(tf.Graph()), tf.device(device_function("/gpu:1", "/gpu:0")):
        with tf.device("/cpu:0"):
            assert plain(tf.zeros([2]).device) == "/cpu:0"
        assert plain(tf.zeros([2]).device) == "/gpu:1"


def test_what_reads_and_writes_a_variable_stands_beside_it():
    with run_graph(tf.Graph()) as graph:
        with tf.device(device_function("/cpu:1", "/cpu:0")):
            w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
            doubled = tf.identity(w * 2, name="doubled")
            tf.assign_add(w, doubled, name="add")
            chosen = tf.cond(doubled[0] > 1, lambda: w + 1, lambda: w * 3)
            tf.while_loop(lambda i: i < 3, lambda i: i + tf.cast(w[0], tf.int32), [0])
        devices = {operation.name: plain(operation.device) for operation in graph.get_operations()}
        assert devices["w"] == "/cpu:0"
        assert devices["w/Read/ReadVariableOp"] == "/cpu:0"
        assert [plain(op.device) for op in graph.get_operations() if op.type == "AssignAddVariableOp"] == ["/cpu:0"]
        assert devices["doubled"] == "/cpu:1"
        # What is inside has devices of its own, and most of it is the tower's work.
        functions = [op for op in graph.get_operations() if op.type.endswith(("If", "While"))]
        assert [plain(op.device) for op in functions] == ["/cpu:1", "/cpu:1"]
        config = tf.ConfigProto(device_count={"CPU": 2})
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(chosen).tolist() == [0, 0]
