"""The weights of a network: their types, their decay, their names."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.nets.parts.variables import network_variable

VALUES = np.float32([1.0, -2.0, 0.1])


def variable(name="w", used_as=tf.float32, asked_as=tf.float32, decay=0.0):
    return network_variable(name, [3], used_as, asked_as, tf.constant_initializer(VALUES), decay)


def losses():
    return tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)


def test_a_variable_of_the_type_that_is_used_is_itself():
    with tf.Graph().as_default():
        with tf.variable_scope("a"):
            value = variable()
        assert value is tf.global_variables()[0]
        assert tf.trainable_variables() == [value]
        assert value.op.name == "a/w"
        assert not losses()


@pytest.mark.parametrize("half", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("stored", [None, tf.float32])
@pytest.mark.parametrize("emulated", [True, False])
def test_half_precision(half, stored, emulated):
    used = tf.float32 if emulated else half
    with tf.Graph().as_default(), tf.Session() as session:
        with mox.var_scope(force_dtype=stored):
            value = variable(used_as=used, asked_as=half)
        (real,) = tf.global_variables()
        assert real.dtype.base_dtype == (stored or half)
        assert value.dtype == used
        session.run(real.initializer)
        exact = session.run(tf.cast(value, tf.float32))
        gradient = tf.gradients(tf.reduce_sum(tf.cast(value, tf.float32) * VALUES), real)[0]
        assert gradient.dtype == real.dtype.base_dtype
        found = session.run(tf.cast(gradient, tf.float32))
    if stored and emulated:
        # Not rounded on the way: 0.1 in half precision is another number.
        np.testing.assert_array_equal(exact, VALUES)
        np.testing.assert_array_equal(found, VALUES)
    else:
        np.testing.assert_array_equal(exact, VALUES.astype(half.as_numpy_dtype).astype("float32"))
        np.testing.assert_allclose(found, VALUES, rtol=5e-3)
    assert abs(exact[2] - 0.1) < 1e-3


def test_stored_smaller_than_asked_for():
    with tf.Graph().as_default():
        with mox.var_scope(force_dtype=tf.float16):
            value = variable()
        assert value.dtype == tf.float32 and tf.global_variables()[0].dtype.base_dtype == tf.float16


def test_decay_is_half_the_sum_of_squares():
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("a"):
            value = variable(decay=0.25)
        session.run(tf.global_variables_initializer())
        (loss,) = losses()
        assert loss.dtype == tf.float32 and loss.shape.rank == 0
        assert loss.name.startswith("a/w/Regularizer/l2_regularizer")
        assert session.run(loss) == pytest.approx(0.25 * (VALUES**2).sum() / 2)
        np.testing.assert_allclose(session.run(tf.gradients(loss, value)[0]), 0.25 * VALUES, rtol=1e-6)


@pytest.mark.parametrize("stored", [None, tf.float32])
def test_decay_of_half_precision_does_not_overflow(stored):
    with tf.Graph().as_default(), tf.Session() as session:
        with mox.var_scope(force_dtype=stored):
            network_variable("w", [1000], tf.float16, tf.float16, tf.constant_initializer(100.0), 1e-4)
        session.run(tf.global_variables_initializer())
        (loss,) = losses()
        # The sum of the squares is 10,000,000: far beyond float16.
        assert session.run(loss) == pytest.approx(1e-4 * 1000 * 100.0**2 / 2, rel=1e-3)


def test_one_loss_however_often_a_variable_is_reused():
    with tf.Graph().as_default():
        first = variable(decay=0.1)
        with tf.variable_scope("", reuse=True):
            second = variable(decay=0.1)
        assert first is second
        assert len(losses()) == 1


def test_the_initializer_fills_the_stored_type():
    with tf.Graph().as_default(), tf.Session() as session, mox.var_scope(force_dtype=tf.float32):
        network_variable("w", [3], tf.float16, tf.float16, tf.constant_initializer(0.1), 0.0)
        (real,) = tf.global_variables()
        session.run(real.initializer)
        np.testing.assert_array_equal(session.run(real), np.full(3, 0.1, "float32"))
