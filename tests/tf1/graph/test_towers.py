"""A second tower finds the graph as the first one found it, and takes the first one's variables, whoever makes them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_slim as slim

import moxing.tensorflow as mox
from moxing.tf1.graph.run_graph import run_graph
from moxing.tf1.graph.towers import Towers

keras = tf.keras


def images():
    return tf.placeholder_with_default(
        np.random.RandomState(0).rand(2, 32, 32, 3).astype(np.float32), [None, 32, 32, 3]
    )


def rows():
    return tf.placeholder_with_default(np.random.RandomState(1).rand(4, 6).astype(np.float32), [None, 6])


def of_get_variable():
    with tf.variable_scope("outer", regularizer=lambda v: 0.1 * tf.nn.l2_loss(v)):
        w = tf.get_variable("w", [6, 3])
    with tf.variable_scope("outer", reuse=True):
        assert tf.get_variable("w", [6, 3]) is w
    return tf.matmul(rows(), w)


def of_variable():
    with tf.name_scope("mine"):
        w = tf.Variable(tf.ones([6, 3]), name="w")
        b = tf.Variable([1.0, 2.0, 3.0])
    counter = tf.Variable(0, trainable=False, name="counter")
    return tf.matmul(rows(), w) + b + tf.cast(counter, tf.float32)


def of_layers():
    x = tf.layers.conv2d(images(), 4, 3, kernel_regularizer=lambda v: 0.1 * tf.nn.l2_loss(v), name="named")
    x = tf.layers.batch_normalization(tf.layers.conv2d(x, 4, 3), training=True)
    return tf.layers.dense(tf.layers.flatten(x), 3)


def of_keras():
    x = keras.layers.Dense(5, kernel_regularizer=keras.regularizers.l2(0.1))(rows())
    x = keras.layers.BatchNormalization()(x, training=True)
    return keras.layers.Dense(3, name="logits")(x)


def of_keras_lstm():
    x = keras.layers.Embedding(7, 4)(tf.cast(rows() * 6, tf.int32))
    return keras.layers.Dense(2)(keras.layers.LSTM(3)(x))


def of_keras_model():
    given = keras.layers.Input([6])
    out = keras.layers.Dense(2)(keras.layers.BatchNormalization()(keras.layers.Dense(4)(given)))
    return keras.models.Model(given, out)(rows())


def of_slim():
    with slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(0.1), normalizer_fn=slim.batch_norm):
        x = slim.repeat(images(), 2, slim.conv2d, 4, [3, 3], scope="conv")
    return slim.fully_connected(slim.flatten(x), 3, weights_regularizer=slim.l2_regularizer(0.1))


def of_zoo(name="lenet"):
    logits, _ = mox.get_model_fn(name, mox.ModeKeys.TRAIN, 10, weight_decay=0.0004)(images())
    return logits


def of_resnet():
    return of_zoo("resnet_v1_20")


def partitioned():
    w = tf.get_variable("w", [6, 3], partitioner=tf.fixed_size_partitioner(3), regularizer=tf.nn.l2_loss)
    return tf.matmul(rows(), w)


def stored_in_float32():
    with mox.var_scope(force_dtype=tf.float32):
        w = tf.get_variable("w", [6, 3], tf.float16, regularizer=lambda v: 0.1 * tf.nn.l2_loss(v))
    assert w.dtype == tf.float16
    return tf.matmul(tf.cast(rows(), tf.float16), w)


def dynamic_rnn():
    cell = tf.nn.rnn_cell.LSTMCell(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(rows(), [-1, 3, 2]), dtype=tf.float32)
    return outputs[:, -1]


def in_cond():
    def branch():
        return tf.matmul(rows(), tf.get_variable("w", [6, 3], initializer=tf.ones_initializer()))

    return tf.cond(tf.constant(True), branch, lambda: tf.zeros([4, 3]))


MODELS = [
    of_get_variable,
    of_variable,
    of_layers,
    of_keras,
    of_keras_lstm,
    of_keras_model,
    of_slim,
    of_zoo,
    of_resnet,
    partitioned,
    stored_in_float32,
    dynamic_rnn,
    in_cond,
]

KEYS = ("variables", "trainable_variables", "model_variables", "regularization_losses", "losses")


def contents():
    return {key: list(tf.get_collection(key)) for key in KEYS}


def sizes(collections):
    return {key: len(items) for key, items in collections.items()}


@pytest.mark.parametrize("model", MODELS)
def test_every_tower_builds_the_same_from_the_same_variables(model):
    with run_graph(tf.Graph()):
        towers, built, seen = Towers(), [], []
        for index in range(3):
            with towers.build(index):
                built.append(model())
                seen.append(contents())
        assert sizes(seen[0]) == sizes(seen[1]) == sizes(seen[2])
        assert seen[0]["variables"] and len(seen[0]["variables"]) == len(tf.global_variables())
        for key in KEYS[:3]:
            assert all(one is other for one, other in zip(seen[0][key], seen[2][key], strict=True)), key
        for key in KEYS[3:]:
            assert len(tf.get_collection(key)) == 3 * len(seen[0][key]), key
            assert not {id(item) for item in seen[0][key]} & {id(item) for item in seen[1][key]}, key
        assert not any("tower" in variable.op.name for variable in tf.global_variables())
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            if not tf.get_collection("update_ops") and model is not of_zoo:  # whose dropout differs
                first, *others = session.run(built)
                assert np.isfinite(first).all()
                for other in others:
                    np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("model", MODELS)
def test_names_are_those_of_one_tower(model):
    names = []
    for count in (1, 2):
        with run_graph(tf.Graph()):
            towers = Towers()
            for index in range(count):
                with towers.build(index):
                    model()
            names.append([(variable.op.name, variable.shape.as_list()) for variable in tf.global_variables()])
    assert names[0] == names[1]


@pytest.mark.parametrize("model", MODELS)
def test_gradients_of_every_tower_reach_the_shared_variables(model):
    with run_graph(tf.Graph()):
        towers, gradients = Towers(), []
        for index in range(2):
            with towers.build(index):
                loss = tf.reduce_mean(tf.square(tf.cast(model(), tf.float32)))
                if tf.losses.get_regularization_losses():
                    loss += tf.cast(tf.add_n(tf.losses.get_regularization_losses()), tf.float32)
            gradients.append(tf.gradients(loss, tf.trainable_variables()))
        assert all(gradient is not None for tower in gradients for gradient in tower)


def test_what_was_there_before_is_seen_by_all():
    with run_graph(tf.Graph()):
        step = tf.train.get_or_create_global_step()
        given = tf.get_variable("given", [2])
        tf.add_to_collection("mine", "before")
        towers = Towers()
        for index in range(2):
            with towers.build(index):
                assert tf.train.get_or_create_global_step() is step
                with tf.variable_scope("", reuse=True):
                    assert tf.get_variable("given", [2]) is given
                tf.get_variable("own", [3])
                tf.add_to_collection("mine", index)
                assert tf.get_collection("mine") == ["before", index]
                assert [variable.op.name for variable in tf.trainable_variables()] == ["given", "own"]
        assert tf.get_collection("mine") == ["before", 0, 1]
        with tf.variable_scope("", reuse=True):
            assert tf.get_variable("own", [3]) is tf.trainable_variables()[1]


def test_updates_are_those_of_the_first_tower():
    """Also for a script that runs them itself."""
    with run_graph(tf.Graph()):
        towers, seen = Towers(), []
        for index in range(3):
            with towers.build(index):
                of_layers()
                seen.append(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        assert [len(updates) for updates in seen] == [2, 0, 0]
        assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == seen[0]
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, "later")
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 3


def test_own_copies_are_in_no_collection_of_the_graph():
    def copy(index, first, create, arguments):
        return create(**{**arguments, "collections": [], "trainable": False})

    with run_graph(tf.Graph()):
        towers, made = Towers(copy), []
        for index in range(2):
            with towers.build(index):
                of_slim()
                made.append(tf.trainable_variables())
                assert tf.get_collection("model_variables") == tf.global_variables()
        assert len(made[0]) == len(made[1])
        assert not {id(variable) for variable in made[0]} & {id(variable) for variable in made[1]}
        for key in KEYS[:3]:
            assert not {id(variable) for variable in tf.get_collection(key)} & {id(copied) for copied in made[1]}


def test_an_exception_leaves_the_graph_as_it_was():
    with run_graph(tf.Graph()):
        towers = Towers()
        with towers.build(0):
            of_get_variable()
        before, scope = contents(), tf.get_variable_scope()
        with pytest.raises(RuntimeError, match="of the script"), towers.build(1), tf.variable_scope("open"):
            raise RuntimeError("of the script")
        assert contents() == before
        assert tf.get_variable_scope() is scope


def dense(name, *shape):
    return lambda: tf.get_variable(name, list(shape))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([dense("a", 2)], [dense("a", 2), dense("extra", 3)], r"one more variable, 'extra', for tower 1"),
        ([dense("a", 2), dense("fewer", 3)], [dense("a", 2)], r"variable fewer for the first tower, but not for"),
        ([dense("a", 2)], [], r"created the variable a for the first tower, but not for tower 1"),
        ([dense("a", 2, 3)], [dense("a", 2, 4)], r"'a' of shape \(2, 4\) for tower 1, .* a of shape \(2, 3\)"),
        ([dense("a", 2)], [lambda: tf.Variable([1.0, 2.0, 3.0], name="a")], r"'a' of shape \(3,\) for tower 1"),
        ([dense("a", 2)], [dense("b", 2)], r"'b' of shape \(2,\) for tower 1, where the first tower has a"),
        (
            [dense("a", 2), dense("b", 2)],
            [dense("b", 2), dense("a", 2)],
            r"'b' of shape \(2,\) for tower 1, where the first tower has a .* in the same order",
        ),
    ],
)
def test_another_model_the_second_time(first, second, message):
    with run_graph(tf.Graph()):
        towers = Towers()
        with towers.build(0):
            for make in first:
                make()
        with pytest.raises(ValueError, match=message), towers.build(1):
            for make in second:
                make()
