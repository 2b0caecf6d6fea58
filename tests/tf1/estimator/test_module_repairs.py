"""Repairs of single modules: pandas' text columns, RNN Estimators on one sequence."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow import estimator
from moxing.tf1.contrib import estimator as contrib_estimator
from moxing.tf1.estimator.module_repairs import _with_objects


def test_text_columns_of_pandas_are_read(tmp_path):
    frame = pd.DataFrame({"color": ["red", "blue", "red", "blue"], "size": [1.0, 2.0, 3.0, 4.0]})
    labels = pd.Series([0, 1, 0, 1])
    colors = tf.feature_column.categorical_column_with_vocabulary_list("color", ["red", "blue"])
    one = estimator.LinearClassifier([colors, tf.feature_column.numeric_column("size")], str(tmp_path))
    read = estimator.inputs.pandas_input_fn(frame, labels, batch_size=2, num_epochs=30, shuffle=False)
    one.train(read)
    assert tf.train.load_variable(str(tmp_path), "global_step") == 60


def test_columns_of_the_same_name_and_a_text_index_stay():
    frame = pd.DataFrame([["a", "b"], ["c", "d"]], index=["x", "y"], columns=["same", "same"]).astype("string")
    frame.index = frame.index.astype("string")
    objects = _with_objects(frame, pd.StringDtype)
    assert [str(dtype) for dtype in objects.dtypes] == ["object", "object"]
    assert str(objects.index.dtype) == "object"
    assert objects.to_numpy().tolist() == [["a", "b"], ["c", "d"]]


def one_sequence():
    features = {"x": tf.SparseTensor([[0, 0], [0, 1]], [1.0, 2.0], [1, 2]), "y": tf.constant([[3.0]])}
    return tf.data.Dataset.from_tensors((features, [[1]])).repeat()


def rnn_classifier(directory, **kwargs):
    column = tf.feature_column.sequence_numeric_column("x")
    return contrib_estimator.RNNClassifier([column], model_dir=str(directory), **kwargs)


@pytest.mark.slow
def test_an_rnn_estimator_on_one_sequence(tmp_path):
    rnn_classifier(tmp_path, units=[4], cell_type="lstm").train(one_sequence, steps=2)
    assert tf.train.load_variable(str(tmp_path), "global_step") == 2


@pytest.mark.slow
def test_the_batch_may_be_known_from_the_context_alone(tmp_path):
    embedded = tf.feature_column.embedding_column(
        tf.feature_column.sequence_categorical_column_with_identity("x", 3), dimension=2
    )

    def input_fn():
        shape = tf.placeholder_with_default(tf.constant([1, 2], tf.int64), [2])
        sequence = tf.SparseTensor([[0, 0], [0, 1]], [1, 2], shape)
        return {"x": sequence, "y": tf.constant([[3.0]])}, [[1]]

    one = contrib_estimator.RNNClassifier(
        [embedded], [tf.feature_column.numeric_column("y")], units=[4], model_dir=str(tmp_path)
    )
    one.train(input_fn, steps=2)
    assert tf.train.load_variable(str(tmp_path), "global_step") == 2


@pytest.mark.slow
def test_the_variables_of_stacked_cells_have_the_names_of_tensorflow_1(tmp_path):
    rnn_classifier(tmp_path, units=[4, 3], cell_type="gru").train(one_sequence, steps=1)
    shapes = dict(tf.train.list_variables(str(tmp_path)))
    assert shapes["rnn_model/rnn/kernel"] == [1, 12]
    assert shapes["rnn_model/rnn/kernel_1"] == [4, 9]


def test_a_cell_that_is_no_layer_stays_as_it_is(tmp_path):
    class Sum:
        state_size = output_size = 1

        def call(self, inputs, states, **_):
            total = inputs + states[0]
            return total, [total]

        def __call__(self, inputs, states, **_):
            return self.call(inputs, states)

    rnn_classifier(tmp_path, rnn_cell_fn=Sum).train(one_sequence, steps=1)
    names = {name for name, _ in tf.train.list_variables(str(tmp_path))}
    assert not any(name.startswith("rnn_model/rnn/") for name in names)


def test_a_metric_of_a_time_series_keeps_the_last_value_whatever_its_shape():
    head = importlib.import_module("tensorflow_estimator.python.estimator.canned.timeseries.head")
    with tf.Graph().as_default(), tf.Session() as session:
        series = tf.placeholder(tf.float32, [None, 2])
        value, update = head._identity_metric_single("mean", series)
        assert value.shape.as_list() == [None, 2]
        session.run(tf.local_variables_initializer())
        for length in (3, 1):
            session.run(update, {series: np.full([length, 2], length)})
            assert session.run(value).tolist() == [[length, length]] * length
