"""tf.contrib.learn.Estimator with a model function of its own form."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1 import contrib

learn = contrib.learn
X = np.random.RandomState(0).rand(64, 3).astype(np.float32)
Y = (X @ [[1.0], [-2.0], [0.5]] + 0.25).astype(np.float32)


def model_fn(features, labels, mode, params):
    prediction = tf.layers.dense(features, 1, name="line")
    if mode == learn.ModeKeys.INFER:
        return learn.ModelFnOps(mode, {"y": prediction, "twice": prediction * 2})
    loss = tf.losses.mean_squared_error(labels, prediction)
    train_op = contrib.layers.optimize_loss(loss, tf.train.get_global_step(), params["rate"], "Adam")
    return learn.ModelFnOps(mode, {"y": prediction}, loss, train_op)


def test_fit_evaluate_predict_export(tmp_path):
    estimator = learn.Estimator(model_fn, str(tmp_path / "model"), params={"rate": 0.1})
    assert estimator.params == {"rate": 0.1}
    learn.SKCompat(estimator).fit(X, Y, batch_size=32, steps=120)
    mean = learn.MetricSpec(lambda predictions, labels: tf.metrics.mean(predictions - labels), "y")
    found = estimator.evaluate(
        X, Y, metrics={"bias": mean, ("y_mean", "y"): lambda predictions, labels: tf.metrics.mean(predictions)}
    )
    assert found["loss"] < 0.02 and abs(found["bias"]) < 0.2 and found["global_step"] == 120
    assert abs(found["y_mean"] - Y.mean()) < 0.2
    kernel, bias = (estimator.get_variable_value(f"line/{name}") for name in ("kernel", "bias"))
    predicted = learn.SKCompat(estimator).predict(X[:5])
    np.testing.assert_allclose(predicted["y"], X[:5] @ kernel + bias, rtol=1e-4)
    row, _ = estimator.predict(input_fn=lambda: tf.constant(X[:2]), outputs=["twice"])
    np.testing.assert_allclose(row["twice"], 2 * (X[0] @ kernel + bias), rtol=1e-4)

    def serve():
        x = tf.placeholder(tf.float32, [None, 3])
        return learn.InputFnOps(x, None, {"x": x})

    exported = estimator.export_savedmodel(str(tmp_path / "export"), serve)
    served = contrib.predictor.from_saved_model(exported.decode())({"x": X[:5]})
    np.testing.assert_allclose(served["y"], predicted["y"], rtol=1e-4)


def test_a_model_function_that_returns_a_tuple(tmp_path):
    def tuple_fn(features, labels):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(labels - w * features))
        step = tf.train.get_global_step()
        return w * features, loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss, step)

    engineer = lambda features, labels: (features * 0 + 1, labels)  # noqa: E731
    estimator = learn.Estimator(tuple_fn, str(tmp_path), feature_engineering_fn=engineer)
    data = lambda: (tf.constant([5.0]), tf.constant([3.0]))  # noqa: E731
    estimator.fit(input_fn=data, steps=1)
    estimator.partial_fit(input_fn=data)
    assert estimator.get_variable_value("w") == 3.0 and "w" in estimator.get_variable_names()
    assert estimator.evaluate(input_fn=data, steps=1)["global_step"] == 2
    with pytest.raises(ValueError, match="expected either x or input_fn"):
        estimator.fit(steps=1)
    with pytest.raises(NotImplementedError, match="feed_fn"):
        estimator.evaluate(X, Y, feed_fn=dict)
    with pytest.raises(NotImplementedError, match="default_output_alternative_key"):
        estimator.export_savedmodel("x", dict, default_output_alternative_key="a")
    with pytest.raises(ValueError, match="model_fn=None"):
        learn.Estimator()
