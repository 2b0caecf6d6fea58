"""Repairs of single modules: pandas' text columns, RNN Estimators on one sequence."""

from __future__ import annotations

import pandas as pd
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


def test_an_rnn_estimator_on_one_sequence(tmp_path):
    column = tf.feature_column.sequence_numeric_column("x")

    def input_fn():
        features = {"x": tf.SparseTensor([[0, 0], [0, 1]], [1.0, 2.0], [1, 2])}
        return tf.data.Dataset.from_tensors((features, [[1]])).repeat()

    one = contrib_estimator.RNNClassifier([column], units=[4], cell_type="lstm", model_dir=str(tmp_path))
    one.train(input_fn, steps=2)
    assert tf.train.load_variable(str(tmp_path), "global_step") == 2
