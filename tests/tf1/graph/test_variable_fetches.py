"""A variable that is fetched by name."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph import variable_fetches

VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def installed():
    variable_fetches.install()
    variable_fetches.install()


def test_a_session_returns_the_value_for_the_name_and_for_the_tensor():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        with tf.variable_scope("net"):
            weights = tf.get_variable("w", initializer=VALUE, use_resource=True)
        step = tf.Variable(7, name="step", use_resource=True)
        session.run(tf.global_variables_initializer())
        graph.finalize()
        handle = graph.get_tensor_by_name("net/w:0")
        values = session.run({"name": "net/w:0", "tensor": handle, "op": "net/w", "variable": weights, "s": ["step:0"]})
        for key in ("name", "tensor", "variable"):
            np.testing.assert_array_equal(values[key], VALUE)
        assert values["op"] is None and values["s"] == [7] and step.name == "step:0"
        call = session.make_callable("net/w:0")
        np.testing.assert_array_equal(call(), VALUE)
        # Before the session is closed: it raises an error afterwards.
        del call
        gc.collect()
        np.testing.assert_array_equal(session.run("net/w:0", {"net/w/Read/ReadVariableOp:0": VALUE + 1}), VALUE + 1)


def test_a_variable_without_a_read_of_its_own_gets_one():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2, 3], shared_name="w", name="w")
        with tf.name_scope("elsewhere"):
            update = tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(VALUE))
            with tf.control_dependencies([update]):
                tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)  # it would assign again
            session.run(tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(VALUE + 5)))
            np.testing.assert_array_equal(session.run("w:0"), VALUE + 5)
        size = len(graph.get_operations())
        session.run("w:0")
        assert len(graph.get_operations()) == size
