"""Means of gradients over towers, and which variables a loss trains."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import moxing.tensorflow as mox
from moxing.tensorflow.parallel.gradients import (
    average_gradients,
    normalize_weights,
    trainable_variables,
    variables_in_scopes,
    weighted_sum,
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def slices(values, indices, rows=4):
    return tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(indices), tf.constant([rows, len(values[0])]))


def dense(value):
    return run(tf.convert_to_tensor(value))


@pytest.mark.parametrize("weights", [[None, None], [3, 3], [7, 2], [5, 0]])
def test_dense_mean(weights):
    values = [np.float32([1, 2]), np.float32([5, -2])]
    expected = np.average(values, axis=0, weights=None if weights[0] is None else weights)
    np.testing.assert_allclose(
        dense(weighted_sum([tf.constant(value) for value in values], normalize_weights(weights))), expected
    )


@pytest.mark.parametrize("weights", [[None, None], [7, 2], [5, 0]])
def test_sparse_mean_equals_the_dense_one(weights):
    """Rows that come twice in a tower, and on both towers."""
    sparse = [slices([[1, 2], [3, 4], [1, 1]], [0, 3, 0]), slices([[10, 20]], [3])]
    combined = weighted_sum(sparse, normalize_weights(weights))
    assert isinstance(combined, tf.IndexedSlices)
    as_dense = [tf.convert_to_tensor(value) for value in sparse]
    np.testing.assert_allclose(dense(combined), dense(weighted_sum(as_dense, normalize_weights(weights))))


def test_sparse_on_one_tower_alone():
    combined = weighted_sum([slices([[1, 2]], [1], 2), tf.constant([[1.0, 1], [1, 1]])], [0.5, 0.5])
    np.testing.assert_allclose(dense(combined), [[0.5, 0.5], [1, 1.5]])


def test_half_precision_keeps_its_type():
    combined = weighted_sum(
        [tf.constant([1, 2], tf.float16), tf.constant([2, 4], tf.float16)], normalize_weights([1, 3])
    )
    assert combined.dtype == tf.float16
    np.testing.assert_allclose(dense(combined), [1.75, 3.5])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_shares(weights):
    with tf.Graph().as_default():
        shares = np.array(run(normalize_weights([tf.constant(weight, tf.int64) for weight in weights])))
    assert np.isfinite(shares).all()
    assert shares.sum() == pytest.approx(1 if sum(weights) else 0, abs=1e-6)


def test_shares_that_differ():
    values = [tf.constant([1.0, 2.0]), tf.constant([4.0, 8.0])]
    np.testing.assert_allclose(dense(weighted_sum(values, [0.25, 0.75])), [3.25, 6.5])


def test_averaged_keeps_losses_and_variables_apart():
    towers = [[[(tf.constant(1.0 + tower), "w")], [(tf.constant(10.0 * tower), "v")]] for tower in range(3)]
    groups = average_gradients(towers, [None] * 3)
    assert [[name for _, name in group] for group in groups] == [["w"], ["v"]]
    np.testing.assert_allclose(run([gradient for group in groups for gradient, _ in group]), [2, 10])


def test_one_tower_is_left_alone():
    pairs = [(tf.constant(1.0), "w")]
    assert average_gradients([[pairs]], [tf.constant(3)])[0] is pairs


def test_scopes_and_patterns():
    with tf.variable_scope("generator"):
        a = tf.get_variable("w", [1])
    with tf.variable_scope("generator_2"):
        b = tf.get_variable("w", [1])
    assert variables_in_scopes([a, b], None) == [a, b]
    assert variables_in_scopes([a, b], ["generator"]) == [a]
    assert variables_in_scopes([a, b], ["generator", "generator/w", "generator_2/"]) == [a, b]
    mox.set_flag("trainable_include_patterns", "_2/")
    assert trainable_variables() == [b]
    with pytest.raises(ValueError, match="no trainable variable is in scope 'other'"):
        variables_in_scopes([a, b], ["other"])
