"""tf.contrib.predictor, on an export and on an Estimator."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow import estimator
from moxing.tf1.contrib import predictor


def model_fn(features, labels, mode):
    weight = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))
    outputs = {"double": features["x"] * 2.0, "times": features["x"] * weight}
    exports = {"serving_default": estimator.export.PredictOutput(outputs)}
    loss = tf.square(weight)
    step = tf.train.get_global_step().assign_add(1)
    return estimator.EstimatorSpec(mode, outputs, loss, step, export_outputs=exports)


def receiver_fn():
    x = tf.placeholder(tf.float32, [None], name="x")
    return estimator.export.ServingInputReceiver({"x": x}, {"x": x})


@pytest.fixture
def trained(tmp_path):
    one = estimator.Estimator(model_fn, model_dir=str(tmp_path / "model"))
    return one.train(lambda: tf.data.Dataset.from_tensors({"x": [1.0]}).repeat(), steps=1)


def test_an_exported_model(trained, tmp_path):
    path = trained.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()
    predict = predictor.from_saved_model(path)
    assert {name: value.tolist() for name, value in predict({"x": [1.0, 2.0]}).items()} == {
        "double": [2.0, 4.0],
        "times": [3.0, 6.0],
    }
    with pytest.raises(ValueError, match=r"got the inputs \['y'\], expected \['x'\]"):
        predict({"y": [1.0]})
    with pytest.raises(ValueError, match=r"no signature 'classify'; it has \['serving_default'"):
        predictor.from_saved_model(path, signature_def_key="classify")
    with pytest.raises(OSError, match=rf"export_dir='{tmp_path}/export'; the models in it are {path}\."):
        predictor.from_saved_model(str(tmp_path / "export"))
    names = {"input_names": {"a": "x:0"}, "output_names": {"b": predict.fetch_tensors["times"].name}}
    assert predictor.from_saved_model(path, **names)({"a": [2.0]})["b"].tolist() == [6.0]


def test_an_estimator(trained, tmp_path):
    predict = predictor.from_estimator(trained, receiver_fn)
    np.testing.assert_allclose(predict({"x": [2.0]})["times"], [6.0])
    with pytest.raises(ValueError, match="output_key='other': the model has"):
        predictor.from_estimator(trained, receiver_fn, output_key="other")
    untrained = estimator.Estimator(model_fn, model_dir=str(tmp_path / "empty"))
    with pytest.raises(ValueError, match="has no checkpoint: train the Estimator first"):
        predictor.from_estimator(untrained, receiver_fn)
