"""Definitions that only TensorFlow 1 had. `test_private_paths` uses most of them in a program."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.user.names import private_definitions as definitions


def test_metrics_of_local_variables_and_shapes():
    with tf.Graph().as_default(), tf.Session() as session:
        count = definitions._create_local("count", [2], dtype=tf.float64)
        assert tf.local_variables() == [count] and tf.trainable_variables() == []
        session.run(tf.local_variables_initializer())
        np.testing.assert_array_equal(session.run(count), np.zeros(2))
        one = tf.ones([2, 3]).op
        assert [shape.rank for shape in definitions.unknown_shape(one)] == [None]
        assert definitions.unchanged_shape(tf.negative(one.outputs[0]).op)[0].as_list() == [2, 3]
        assert definitions.scalar_shape(one)[0].rank == 0
        assert definitions.in_graph_mode()
    with pytest.raises(NotImplementedError, match="sets the shapes of an operation itself"):
        definitions.call_cpp_shape_fn("op")


def test_linear_refuses_what_has_no_depth():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="with a static n"):
            definitions._linear(tf.placeholder(tf.float32, [None, None]), 2, True)
        with pytest.raises(ValueError, match="args must be a tensor or a list of at least one tensor, got \\[\\]"):
            definitions._linear([], 2, True)
        inside = definitions._linear(tf.ones([1, 2]), 2, True, scope="Linear", bias_start=2.0)
        assert [one.op.name for one in tf.trainable_variables()] == ["Linear/kernel", "Linear/bias"]
        assert inside.shape.as_list() == [1, 2]


def test_build_information_and_graph_functions():
    assert definitions.is_cuda_build in (True, False) and "MatMul" in definitions.get_registered_ops()
    assert definitions.defun(lambda x: x + 1, autograph=False)(tf.constant(1)) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = definitions.nonsense
