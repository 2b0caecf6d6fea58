"""tf.contrib.learn.monitors: evaluation while a model is trained."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1 import contrib

learn = contrib.learn


def test_a_validation_monitor_stops_a_training_that_gets_no_better(tmp_path):
    x = np.ones([4, 1], np.float32)
    columns = learn.infer_real_valued_columns_from_input(x)
    config = learn.RunConfig(save_checkpoints_steps=5)
    # The validation contradicts the training data: its loss grows.
    monitor = learn.monitors.ValidationMonitor(x, -x, every_n_steps=5, early_stopping_rounds=10)
    regressor = learn.LinearRegressor(columns, str(tmp_path), config=config)
    regressor.fit(x, x, steps=200, monitors=[monitor])
    assert monitor.early_stopped and monitor.best_step <= 10
    last = regressor.evaluate(x, -x)
    assert last["global_step"] < 40 and last["loss"] > monitor.best_value == monitor.best_metrics["loss"]


def test_other_monitors_are_hooks():
    monitors = learn.monitors
    assert isinstance(monitors.PrintTensor(["a"]), tf.train.LoggingTensorHook)
    assert monitors.StopAtStep is tf.train.StopAtStepHook
    validation = monitors.ValidationMonitor([1], [1])
    assert monitors.replace_monitors_with_hooks([validation], "estimator") == [validation]
    assert validation._estimator == "estimator"
    with pytest.raises(ValueError, match="pass it to fit"):
        monitors.ValidationMonitor([1]).begin()
    with pytest.raises(ValueError, match="expected x or input_fn"):
        monitors.ValidationMonitor()
