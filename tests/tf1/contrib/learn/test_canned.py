"""The classifiers and regressors of tf.contrib.learn, as the tutorials of 2016 and 2017 use them."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1 import contrib
from moxing.tf1.contrib.learn import canned, datasets

learn = contrib.learn


def test_the_iris_tutorial(tmp_path):
    iris = datasets.load_iris()
    columns = [contrib.layers.real_valued_column("", dimension=4)]
    classifier = learn.DNNClassifier(
        feature_columns=columns, hidden_units=[10, 20], n_classes=3, model_dir=str(tmp_path), activation_fn=tf.nn.tanh
    )
    data = lambda: (tf.constant(iris.data, tf.float32), tf.constant(iris.target))  # noqa: E731
    classifier.fit(input_fn=data, steps=100)
    key = learn.PredictionKey.CLASSES
    metrics = {"right": learn.MetricSpec(contrib.metrics.streaming_accuracy, prediction_key=key)}
    found = classifier.evaluate(input_fn=data, steps=1, metrics=metrics)
    assert found["accuracy"] > 0.8 and found["right"] == pytest.approx(found["accuracy"])
    classes = list(classifier.predict(iris.data, batch_size=50))
    assert classes[:4] == [0, 0, 0, 0]
    probabilities = classifier.predict_proba(iris.data, as_iterable=False)
    assert probabilities.shape == (150, 3) and (probabilities.argmax(1) == classes).all()


def test_regressors_and_columns_by_name(tmp_path):
    x = np.linspace(0, 1, 40, dtype=np.float32)
    data = {"a": x, "b": np.stack([x, x], 1)}
    columns = learn.infer_real_valued_columns_from_input(data)
    assert [(column.key, column.shape) for column in columns] == [("a", (1,)), ("b", (2,))]
    features = lambda: ({"a": tf.constant(x)}, tf.constant(3 * x + 1))  # noqa: E731
    columns = learn.infer_real_valued_columns_from_input_fn(features)
    regressor = learn.LinearRegressor(columns, str(tmp_path), optimizer=tf.train.AdamOptimizer(0.3))
    regressor.fit({"a": x}, 3 * x + 1, steps=120)
    np.testing.assert_allclose(list(regressor.predict({"a": np.float32([0, 1])})), [1, 4], atol=0.3)
    assert regressor.predict({"a": x}, outputs=["scores"], as_iterable=False)["scores"].shape == (40,)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (canned.DNNRegressor, {"hidden_units": [2], "feature_columns": []}),
        (canned.DNNLinearCombinedRegressor, {"linear_feature_columns": [], "dnn_hidden_units": [2]}),
        (canned.DNNLinearCombinedClassifier, {"dnn_feature_columns": [], "dnn_hidden_units": [2]}),
        (canned.LinearClassifier, {"feature_columns": [], "n_classes": 2}),
    ],
)
def test_arguments_without_a_counterpart_are_refused(kind, arguments):
    with pytest.raises(NotImplementedError, match="gradient_clip_norm=1.0.*has no such argument"):
        kind(**arguments, enable_centered_bias=False, gradient_clip_norm=1.0)


def test_every_name_is_there_or_refuses():
    assert [name for name in learn.__all__ if not hasattr(learn, name)] == []
    with pytest.raises(NotImplementedError, match="tf.contrib.learn.SVM is not available: use tf.contrib.learn.DNN"):
        learn.SVM("id")
    with pytest.raises(AttributeError, match="tf.contrib.learn.DNNClasifier is not available"):
        _ = learn.DNNClasifier
