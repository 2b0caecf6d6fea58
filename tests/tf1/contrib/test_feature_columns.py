"""Feature columns of tf.contrib.layers."""

from __future__ import annotations

import pytest

from helpers.session_runs import run
from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1 import contrib  # noqa: E402

v1 = tf.compat.v1


@pytest.mark.filterwarnings("ignore:.*feature_column:UserWarning")
def test_feature_columns() -> None:
    layers = contrib.layers
    with tf.Graph().as_default():
        age = layers.real_valued_column("age")
        colour = layers.sparse_column_with_keys("colour", ["red", "blue"])
        columns = [
            age,
            layers.bucketized_column(age, [10, 20]),
            layers.one_hot_column(colour),
            layers.embedding_column(layers.sparse_column_with_hash_bucket("town", 5), 2),
        ]
        features = {"age": tf.constant([[5.0], [15.0]]), "colour": tf.constant([["blue"], ["red"]])}
        features["town"] = tf.constant([["x"], ["y"]])
        rows = run(layers.input_from_feature_columns(features, columns))[0]
    assert rows.shape == (2, 1 + 3 + 2 + 2)
