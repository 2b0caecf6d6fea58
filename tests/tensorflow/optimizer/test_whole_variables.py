"""Norms of whole variables, also of those that are spread over several devices."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.whole_variables import colocated_with, summed_rows, whole_norms


def test_operations_are_placed_with_the_variable():
    with tf.Graph().as_default():
        with tf.device("/cpu:1"):
            placed = tf.get_variable("placed", [2], use_resource=True)
        free = tf.get_variable("free", [2], use_resource=True)
        with tf.device("/cpu:0"):
            with colocated_with(placed):
                assert tf.no_op().device == "/device:CPU:1"
            with colocated_with(free):
                assert tf.no_op().device == "/device:CPU:0"


def test_slices_of_a_variable_have_one_norm():
    values = np.full([4, 2], 3.0)
    with tf.Graph().as_default(), tf.Session() as session:
        sliced = tf.get_variable(
            "sliced",
            [4, 2],
            tf.float64,
            tf.constant_initializer(3.0),
            partitioner=tf.fixed_size_partitioner(2),
            use_resource=True,
        )
        whole = tf.get_variable("whole", initializer=values[:1], use_resource=True)
        variables = [*sliced, whole]
        session.run(tf.global_variables_initializer())
        norms = session.run(whole_norms(variables, variables))
    np.testing.assert_allclose(norms, [np.sqrt(72)] * 2 + [np.sqrt(18)])


def test_rows_that_are_named_twice_are_added_before_they_are_squared():
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [4], use_resource=True)
        slices = tf.IndexedSlices(tf.constant([1.0, 2.0, 4.0]), tf.constant([2, 0, 2]), tf.constant([4]))
        assert session.run(whole_norms([slices], [w])) == [np.float32(np.hypot(5, 2))]
        assert session.run(summed_rows(slices)).values.tolist() == [5, 2]


def test_half_precision_is_added_up_in_32_bits():
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [300], tf.float16, use_resource=True)
        (norm,) = whole_norms([tf.fill([300], tf.constant(100, tf.float16))], [w])
        assert norm.dtype == tf.float32
        np.testing.assert_allclose(session.run(norm), 100 * np.sqrt(300), rtol=1e-6)
