"""The graph of a worker without ps: what travels together, and by which numbers the workers meet. No processes here."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from hypothesis import given
from hypothesis import strategies as st

from moxing.tensorflow.parallel import Tower, TrainSetup, collective
from moxing.tensorflow.parallel.collective import Collective
from moxing.tf1.graph.run_graph import run_graph

TYPES = {"half": tf.float16, "single": tf.float32}


def packs_of(gradients):
    with tf.Graph().as_default():
        tensors = [tf.placeholder(TYPES[kind], [size]) for size, kind in gradients]
        return list(collective._buckets(tensors))


@given(st.lists(st.tuples(st.integers(1, 3 << 20), st.sampled_from(sorted(TYPES))), max_size=12))
def test_buckets(gradients):
    packs = packs_of(gradients)
    assert sorted(place for pack in packs for place in pack) == list(range(len(gradients)))
    for pack in packs:
        sizes = [gradients[place][0] * TYPES[gradients[place][1]].size for place in pack]
        assert len({gradients[place][1] for place in pack}) == 1
        assert len(pack) == 1 or sum(sizes) <= collective._BUCKET_BYTES
        # A large one travels without a copy; what travels together is in the order of the backward pass.
        assert len(pack) == 1 or max(sizes) < collective._LARGE_BYTES
        assert pack == sorted(pack, reverse=True)


def test_few_buckets():
    """161 gradients of a network, most of them tiny, are few messages; the last layers' go first."""
    packs = packs_of([(64, "single"), (36864, "single")] * 80 + [(1000, "single")])
    assert len(packs) == 2
    assert packs[0][0] == 160


def built(index=0, run=1, towers=1, weighted=True):
    strategy = Collective([f"/cpu:{tower}" for tower in range(towers)], 2, index, run)
    with strategy.scope():
        step = tf.train.get_or_create_global_step()
        parts = []
        for tower in range(towers):
            with strategy.tower_scope(tower):
                loss = tf.add_n([tf.nn.l2_loss(tf.get_variable(f"w{place}", [place + 1])) for place in range(5)])
                parts.append(Tower([loss], [None], tf.constant(3, tf.int64) if weighted else None))
        train = strategy.train_op(TrainSetup(parts, [lambda: tf.train.MomentumOptimizer(0.1, 0.9)], [], step))
        strategy.sync_ops()
    return train


def numbers(graph):
    """The collective operations: type, number and how many take part."""
    return [
        (op.type, op.get_attr("instance_key"), op.get_attr("group_size"), op.get_attr("group_key"))
        for op in graph.get_operations()
        if op.type.startswith("Collective")
    ]


@pytest.mark.parametrize("towers", [1, 2])
def test_all_workers_number_their_operations_alike_and_runs_differ(towers):
    found = {}
    for run, index in ((1, 0), (1, 1), (2, 0)):
        with run_graph(tf.Graph()) as graph:
            built(index, run, towers)
            found[run, index] = numbers(graph)
    keys = {place: [number for _, number, _, _ in operations] for place, operations in found.items()}
    assert keys[1, 0] == keys[1, 1]
    assert len(set(keys[1, 0])) == len(keys[1, 0])
    assert not set(keys[1, 0]) & set(keys[2, 0])
    assert {size for _, _, size, _ in found[1, 0]} == {2}
    reduced = [kind for kind, *_ in found[1, 0] if kind == "CollectiveReduce"]
    # What is agreed upon, and one pack of all gradients: also those of two towers are sent once.
    assert len(reduced) == 2
    sends, receives = ([kind for kind, *_ in found[1, index]] for index in range(2))
    # Five variables, their momentum and the step, from the chief to the other.
    assert sends.count("CollectiveBcastSend") == receives.count("CollectiveBcastRecv") == 11
    assert "CollectiveBcastRecv" not in sends and "CollectiveBcastSend" not in receives


def test_variables_and_work_are_the_workers_own():
    with run_graph(tf.Graph()) as graph:
        built(index=1)
        for op in graph.get_operations():
            assert not op.device or tf.DeviceSpec.from_string(op.device).job in ("worker", None), op.name
            assert tf.DeviceSpec.from_string(op.device).task in (1, None), op.name


@pytest.mark.parametrize("weighted", [True, False])
def test_endless_data_needs_no_gate(weighted):
    with run_graph(tf.Graph()) as graph:
        train = built(weighted=weighted)
        assert any(op.type == "FIFOQueueV2" for op in graph.get_operations()) is weighted
        assert train.halt.shape.rank == train.next_steps.shape.rank == 0


def test_the_chief_leads_the_group():
    config = tf.ConfigProto()
    Collective(["/cpu:0"], 2, 1, 1).configure(config)
    assert config.experimental.collective_group_leader == "/job:worker/replica:0/task:0"
