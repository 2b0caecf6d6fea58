"""Experiments, learn_runner and export strategies."""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1 import contrib

learn = contrib.learn
X = np.linspace(0, 1, 16, dtype=np.float32)[:, None]


def data():
    return {"x": tf.constant(X)}, tf.constant(2 * X)


def test_a_run_trains_evaluates_and_exports(tmp_path):
    columns = [contrib.layers.real_valued_column("x")]
    serve = learn.utils.input_fn_utils.build_parsing_serving_input_fn({"x": tf.FixedLenFeature([1], tf.float32)})
    error = learn.MetricSpec(
        lambda predictions, labels: tf.metrics.mean_absolute_error(labels, predictions), "predictions"
    )

    def experiment_fn(run_config, hparams):
        return learn.Experiment(
            learn.LinearRegressor(columns, config=run_config, optimizer=tf.train.AdamOptimizer(hparams)),
            train_input_fn=data,
            eval_input_fn=data,
            train_steps=12,
            eval_steps=1,
            eval_metrics={"error": error},
            export_strategies=[learn.make_export_strategy(serve, exports_to_keep=1)],
        )

    config = learn.RunConfig(model_dir=str(tmp_path))
    metrics, exports = learn.learn_runner.run(experiment_fn, run_config=config, hparams=0.1)
    assert metrics["global_step"] == 12 and 0 < metrics["error"] < 2
    assert os.path.dirname(exports[0].decode()) == str(tmp_path / "export" / "Servo")
    again = learn.learn_runner.run(experiment_fn, run_config=config, hparams=0.1, schedule="evaluate")
    assert again["error"] == pytest.approx(metrics["error"])


def test_what_is_refused():
    with pytest.raises(ValueError, match="expected output_dir or run_config"):
        learn.learn_runner.run(len)
    with pytest.raises(ValueError, match="run_config has no model_dir"):
        learn.learn_runner.run(len, run_config=learn.RunConfig())
    with pytest.raises(ValueError, match="schedule='tune'"):
        learn.learn_runner.run(lambda output_dir: output_dir, "dir", schedule="tune")
    with pytest.raises(NotImplementedError, match="default_output_alternative_key='a'"):
        learn.make_export_strategy(dict, "a")
