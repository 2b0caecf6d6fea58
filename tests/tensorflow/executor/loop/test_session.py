"""The session of a run: what is ready in it, and in which order it got ready."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
from moxing.tensorflow.executor.loop.session import open_session, session_config


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_variables_and_tables_are_ready():
    kept = tf.get_variable("kept", initializer=3.0)
    local = tf.get_variable("local", initializer=4.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    keys = tf.lookup.KeyValueTensorInitializer(tf.constant(["a"]), tf.constant([7]))
    found = tf.lookup.StaticHashTable(keys, -1).lookup(tf.constant(["a", "b"]))
    with open_session(None, [], UserHooks([])) as session:
        assert session.run([kept, local]) == [3.0, 4.0]
        assert session.run(found).tolist() == [7, -1]


def test_restore_then_initializers_then_hooks():
    """Each sees what the one before it has done."""
    w = tf.get_variable("w", initializer=1.0)
    restored, doubled = w.assign(w + 10.0), w.assign(w * 2.0)
    seen = []

    class Looks(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            seen.append(session.run(w))

    def restore(session):
        seen.append(session.run(w))
        session.run(restored)

    with open_session(restore, [doubled.op], UserHooks([Looks()])):
        pass
    assert seen == [1.0, 22.0]


def test_queues_run_while_the_session_is_open():
    queue = tf.train.input_producer([5, 6], shuffle=False)
    element = queue.dequeue()
    with open_session(None, [], UserHooks([])) as session:
        assert [session.run(element) for _ in range(3)] == [5, 6, 5]


def test_the_session_is_closed_after_an_error():
    w = tf.get_variable("w", initializer=1.0)
    with pytest.raises(KeyError, match="mine"), open_session(None, [], UserHooks([])) as session:
        raise KeyError("mine")
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(w)


def test_threads_come_from_the_flags():
    mox.set_flag("num_inter_threads", 3)
    mox.set_flag("num_intra_threads", 2)
    config = session_config()
    assert (config.inter_op_parallelism_threads, config.intra_op_parallelism_threads) == (3, 2)


def test_a_device_that_is_missing_is_replaced():
    """Operations without a kernel for the chosen device, or on a GPU that is not there, run on the CPU."""
    with tf.Graph().as_default(), tf.device("/gpu:7"):
        total = tf.constant(1.0) + tf.constant(2.0)
        with tf.Session(config=session_config()) as session:
            assert session.run(total) == 3.0


def test_gpu_memory_grows():
    assert session_config().gpu_options.allow_growth


def test_logical_cpus_only_where_towers_stand_on_them():
    for devices in ([], ["/gpu:0", "/gpu:1"]):
        assert not session_config(devices).device_count
    with tf.Session(config=session_config(["/cpu:0", "/cpu:1", "/cpu:2"])) as session:
        assert len([device for device in session.list_devices() if device.device_type == "CPU"]) == 3
