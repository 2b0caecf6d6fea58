"""`mox.var_scope`: variables stored in one type, used in another."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_slim as slim

import moxing.tensorflow as mox


def test_the_example_of_the_manual(capsys):
    with tf.Graph().as_default():
        with mox.var_scope(force_dtype=tf.float32):
            a = tf.get_variable("a", shape=[], dtype=tf.float16)
        print(a)
        print(tf.global_variables()[0])
    first, second = capsys.readouterr().out.splitlines()
    assert first == 'Tensor("Cast:0", shape=(), dtype=float16)'
    assert "'a:0' shape=() dtype=float32" in second


@pytest.mark.parametrize(
    "initializer",
    [
        tf.constant_initializer([1.5, 2.5]),
        tf.zeros_initializer,
        np.float16([1.5, 2.5]),
        [1.5, 2.5],
        lambda shape, dtype, partition_info=None: tf.fill(shape, tf.constant(1.5, dtype)),
    ],
)
def test_every_kind_of_initializer(initializer):
    with tf.Graph().as_default(), tf.Session() as session, mox.var_scope(force_dtype=tf.float32):
        given = {} if isinstance(initializer, list | np.ndarray) else {"shape": [2], "dtype": tf.float16}
        asked = tf.float32 if isinstance(initializer, list) else tf.float16
        a = tf.get_variable("a", initializer=initializer, **given)
        b = tf.get_variable("b", initializer=tf.constant([1.5, 2.5], tf.float16))
        session.run(tf.global_variables_initializer())
        assert {variable.dtype.base_dtype for variable in tf.global_variables()} == {tf.float32}
        assert [a.dtype.base_dtype, b.dtype] == [asked, tf.float16]
        assert session.run(b).tolist() == [1.5, 2.5]
        expected = {"list": [1.5, 2.5], "ndarray": [1.5, 2.5], "Constant": [1.5, 2.5], "function": [1.5, 1.5]}
        assert session.run(a).tolist() == expected.get(type(initializer).__name__, [0, 0])


def test_scopes_names_and_reuse():
    with tf.Graph().as_default(), tf.variable_scope("net"):
        with mox.var_scope(force_dtype=tf.float32), tf.variable_scope("layer"):
            w = tf.get_variable("w", [2], tf.float16)
            scope = tf.get_variable_scope().name
        with mox.var_scope(force_dtype=tf.float32), tf.variable_scope("layer", reuse=True):
            again = tf.get_variable("w", [2], tf.float16)
        outside = tf.get_variable("outside", [2], tf.float16)
        assert scope == "net/layer"
        assert w.op.type == again.op.type == "Cast"
        names = {variable.op.name: variable.dtype.base_dtype for variable in tf.global_variables()}
        assert names == {"net/layer/w": tf.float32, "net/outside": tf.float16}
        assert not isinstance(outside, tf.Tensor)
        assert tf.trainable_variables() == tf.global_variables()


def test_what_it_leaves_alone():
    with tf.Graph().as_default(), mox.var_scope(force_dtype=tf.float32):
        same = tf.get_variable("same", [2])
        count = tf.get_variable("count", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
        flag = tf.get_variable("flag", initializer=True, trainable=False)
        for variable in (same, count, flag):
            assert not isinstance(variable, tf.Tensor)
            variable.assign(tf.zeros_like(variable))
        with mox.var_scope(None):
            assert tf.get_variable("half", [2], tf.float16).op.type == "Cast"
    with tf.Graph().as_default(), mox.var_scope(None):
        assert not isinstance(tf.get_variable("half", [2], tf.float16), tf.Tensor)


def test_it_ends_with_an_error_inside():
    with tf.Graph().as_default():
        with pytest.raises(KeyError), mox.var_scope(tf.float32):
            raise KeyError
        assert not isinstance(tf.get_variable("a", [2], tf.float16), tf.Tensor)


def test_one_inside_another():
    """The outer one says how variables are stored, the inner one what is handed to it."""
    with tf.Graph().as_default(), mox.var_scope(tf.float32), mox.var_scope(tf.float16):
        a = tf.get_variable("a", [2], tf.float64)
        assert a.dtype == tf.float64
        assert tf.global_variables()[0].dtype.base_dtype == tf.float32


def test_the_scope_s_own_regularizer_and_losses():
    """A script adds the losses to the one of its half-precision logits."""
    with tf.Graph().as_default(), tf.Session() as session, mox.var_scope(force_dtype=tf.float32):
        with tf.variable_scope("net", regularizer=slim.l2_regularizer(0.5)):
            # 300^2 is more than half precision can hold.
            tf.get_variable("w", [2], tf.float16, initializer=tf.constant_initializer(300.0))
        tf.get_variable("none", [2], tf.float16, regularizer=lambda w: None)
        slim.fully_connected(tf.ones([1, 2], tf.float16), 3, weights_regularizer=slim.l2_regularizer(1.0))
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        session.run(tf.global_variables_initializer())
        assert [loss.dtype for loss in losses] == [tf.float16] * 2
        assert session.run(losses[0]) == 0.5 * 300.0**2


@pytest.mark.parametrize(
    ("value", "kind"), [("half precision", TypeError), (tf.int32, ValueError), (tf.string, ValueError)]
)
def test_another_thing_than_a_type(value, kind):
    with (
        tf.Graph().as_default(),
        pytest.raises(kind, match=r"mox.var_scope\(force_dtype=.*tf.float32"),
        mox.var_scope(value),
    ):
        pass
