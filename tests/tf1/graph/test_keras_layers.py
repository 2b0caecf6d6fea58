"""Keras and tf.layers under their TensorFlow 1 names, in plain v1 graphs."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1.graph import keras_layers  # noqa: E402
from moxing.tf1.user import keras_modules  # noqa: E402

v1 = tf.compat.v1

# Every function of tf.layers says that it is deprecated.
pytestmark = pytest.mark.filterwarnings(r"ignore:.tf\.layers\.:UserWarning")


def load(name: str) -> Any:
    """Imports a module as the launcher does, through the table."""
    found = keras_modules.module_name(name)
    assert found is not None
    return importlib.import_module(found)


@pytest.fixture(params=["v1 shapes", "v2 shapes"])
def graph(request: pytest.FixtureRequest) -> Iterator[Any]:
    keras_layers.install_update_recorder()
    if request.param == "v1 shapes":
        v1.disable_v2_tensorshape()
    try:
        with tf.Graph().as_default() as graph:
            yield graph
    finally:
        v1.enable_v2_tensorshape()


def initialized_session() -> Any:
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return session


def update_ops() -> list[Any]:
    return v1.get_collection(v1.GraphKeys.UPDATE_OPS)


def test_the_defaults_are_those_of_tensorflow_1(graph: Any) -> None:
    assert load("tensorflow.python.keras.layers").LSTM(2).recurrent_activation.__name__ == "hard_sigmoid"


def manual_model(main_input: Any, auxiliary_input: Any) -> tuple[Any, Any]:
    """The model of the manual's Keras programs, smaller."""
    layers = load("tensorflow.python.keras.layers")
    x = layers.Embedding(output_dim=8, input_dim=50, input_length=10)(main_input)
    lstm_out = layers.LSTM(4)(x)
    auxiliary_output = layers.Dense(1, activation="sigmoid", name="aux_output")(lstm_out)
    x = layers.concatenate([lstm_out, auxiliary_input])
    x = layers.Dense(6, activation="relu")(x)
    x = layers.Dense(6, activation="relu")(x)
    return layers.Dense(1, activation="sigmoid", name="main_output")(x), auxiliary_output


def train_manual_model(build: Callable[[Any, Any], Any]) -> list[str]:
    binary_crossentropy = load("tensorflow.python.keras.losses").binary_crossentropy
    main_output, auxiliary_output = build(v1.random_uniform((4, 10), 1, 50, tf.int32), v1.random_normal((4, 5)))
    loss = binary_crossentropy(main_output, v1.random_uniform((4, 1)))
    loss = tf.reduce_mean(loss + 0.2 * binary_crossentropy(auxiliary_output, v1.random_uniform((4, 1))))
    train_op = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
    with initialized_session() as session:
        assert np.isfinite(session.run([loss, train_op])[0])
    return sorted(variable.op.name for variable in v1.global_variables())


def manual_model_json() -> str:
    layers, models = load("tensorflow.python.keras.layers"), load("tensorflow.python.keras.models")
    inputs = [layers.Input(shape=(10,)), layers.Input(shape=(5,))]
    return models.Model(inputs=inputs, outputs=list(manual_model(*inputs))).to_json()


@pytest.mark.slow
def test_the_model_of_the_manual_has_the_same_variables_built_by_code_and_from_json(graph: Any) -> None:
    by_code = train_manual_model(manual_model)
    with tf.Graph().as_default():
        text = manual_model_json()
    model_from_json = load("tensorflow.python.keras.models").model_from_json
    with tf.Graph().as_default():
        from_json = train_manual_model(lambda *inputs: model_from_json(text)(list(inputs)))
    assert by_code == from_json
    assert {"embedding/embeddings", "dense/kernel", "dense_1/kernel", "main_output/bias"} < set(by_code)


def test_json_that_tensorflow_1_wrote_still_loads(graph: Any) -> None:
    dense = {"name": "dense_1", "trainable": True, "units": 3, "activation": "relu", "use_bias": True}
    node = [[["input_1", 0, 0, {}]]]
    config = {
        "name": "model_1",
        "layers": [
            {
                "name": "input_1",
                "class_name": "InputLayer",
                "config": {"batch_input_shape": [None, 5], "dtype": "float32", "sparse": False, "name": "input_1"},
                "inbound_nodes": [],
            },
            {"name": "dense_1", "class_name": "Dense", "config": dense, "inbound_nodes": node},
        ],
        "input_layers": [["input_1", 0, 0]],
        "output_layers": [["dense_1", 0, 0]],
    }
    text = json.dumps({"class_name": "Model", "config": config, "keras_version": "2.0.8-tf", "backend": "tensorflow"})
    model = load("tensorflow.python.keras.models").model_from_json(text)
    assert model(tf.zeros([2, 5])).shape.as_list() == [2, 3]


def test_layer_names_start_again_in_every_graph() -> None:
    layers = load("tensorflow.keras.layers")

    def names() -> list[str]:
        x = tf.zeros([2, 3])
        for _ in range(2):
            x = layers.Dense(3)(x)
        layers.Dense(3, name="dense_2")(x)
        return [variable.op.name for variable in v1.global_variables()]

    built = []
    for _ in range(2):
        with tf.Graph().as_default():
            first = names()
            with tf.Graph().as_default():
                built.append(names())
            built.append(first)
    assert built == [built[0]] * 4
    assert built[0][0::2] == ["dense/kernel", "dense_1/kernel", "dense_2/kernel"]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN", "Bidirectional"])
def test_recurrent_layers_train(graph: Any, kind: str) -> None:
    layers = load("tensorflow.python.keras.layers")
    layer = layers.Bidirectional(layers.LSTM(3)) if kind == "Bidirectional" else getattr(layers, kind)(3)
    loss = tf.reduce_mean(tf.square(layer(v1.random_normal([2, 5, 4])) - 1.0))
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    with initialized_session() as session:
        assert np.isfinite(session.run([train_op, loss])[1])


def test_batch_normalization_moves_its_averages_with_update_ops(graph: Any) -> None:
    layer = load("tensorflow.python.keras.layers").BatchNormalization(momentum=0.5)
    layer(tf.constant(np.full([4, 3], 8.0, np.float32)), training=True)
    assert len(update_ops()) == 2
    assert len(layer.updates) == 2
    with initialized_session() as session:
        session.run(update_ops())
        np.testing.assert_allclose(session.run(layer.moving_mean), [4.0, 4.0, 4.0])


def test_an_update_is_recorded_once_however_often_the_recorder_is_installed(graph: Any) -> None:
    for _ in range(3):
        keras_layers.install_update_recorder()
    layer = load("tensorflow.keras.layers").BatchNormalization()
    for _ in range(2):
        layer(v1.random_normal([4, 3]), training=True)
    assert len(update_ops()) == 4
    assert len({id(update) for update in update_ops()}) == 4


def test_tf_layers_updates_are_not_doubled(graph: Any) -> None:
    layers = load("tensorflow.layers")
    x = layers.batch_normalization(v1.random_normal([4, 3]), training=True, momentum=0.5)
    assert len(update_ops()) == 2
    layers.batch_normalization(x, training=True)
    assert len(update_ops()) == 4


def test_a_functional_model_records_only_updates_that_can_run(graph: Any) -> None:
    layers, models = load("tensorflow.keras.layers"), load("tensorflow.keras.models")
    inputs = layers.Input(shape=(3,))
    hidden = layers.BatchNormalization()(layers.Dense(3)(inputs), training=True)
    model = models.Model(inputs, layers.BatchNormalization(momentum=0.5)(hidden, training=True))
    assert update_ops() == []
    model(tf.constant(np.random.RandomState(0).rand(4, 3).astype(np.float32)))
    assert len(update_ops()) == 4
    with initialized_session() as session:
        session.run(update_ops())


def test_a_placeholder_of_the_users_own_is_no_obstacle(graph: Any) -> None:
    images = v1.placeholder(tf.float32, [None, 3])
    layer = load("tensorflow.keras.layers").BatchNormalization(momentum=0.0)
    layer(images, training=True)
    with initialized_session() as session:
        session.run(update_ops(), {images: np.full([2, 3], 5.0)})
        np.testing.assert_allclose(session.run(layer.moving_mean), [5.0, 5.0, 5.0])


def test_frozen_layers_metrics_and_function_graphs_record_nothing(graph: Any) -> None:
    layers, metrics = load("tensorflow.keras.layers"), load("tensorflow.keras").metrics
    layers.BatchNormalization(trainable=False)(v1.random_normal([4, 3]), training=True)
    metrics.MeanSquaredError()(tf.zeros([2, 1]), tf.ones([2, 1]))
    layer = layers.BatchNormalization()
    layer.build([None, 3])
    v1.wrap_function(lambda x: layer(x, training=True), [tf.TensorSpec([4, 3])])
    assert update_ops() == []


def test_dropout_works_in_a_graph(graph: Any) -> None:
    dropout = load("tensorflow.keras.layers").Dropout(0.5)
    trained, plain = dropout(tf.ones([100]), training=True), dropout(tf.ones([100]))
    with v1.Session() as session:
        assert 0.0 in session.run(trained)
        assert session.run(plain).tolist() == [1.0] * 100


@pytest.mark.slow
def test_the_recorder_waits_for_tf_keras() -> None:
    program = (
        "import sys\n"
        "from moxing.tf1.graph import keras_layers\n"
        "keras_layers.install_update_recorder()\n"
        "assert 'tensorflow' not in sys.modules\n"
        "from tf_keras.src.engine import base_layer_v1\n"
        "assert base_layer_v1.Layer.add_update._moxing_original\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
