"""Modes, metrics and run configurations of tf.contrib.learn."""

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib.learn import specs


def test_metrics_choose_predictions_labels_and_weights():
    seen = {}
    spec = specs.MetricSpec(lambda **values: seen.update(values), "p", weight_key="w")
    spec.create_metric_ops({"w": 3}, {"only": 2}, {"p": 1, "q": 0})
    assert seen == {"predictions": 1, "labels": 2, "weights": 3}
    with pytest.raises(ValueError, match=r"prediction_key=None\): expected one of \['p', 'q'\]"):
        specs.MetricSpec(len).create_metric_ops({}, 1, {"p": 1, "q": 0})


def test_modes_and_configurations():
    specs.ModeKeys.validate(specs.ModeKeys.INFER)
    with pytest.raises(ValueError, match="mode 'predict': expected 'train', 'eval' or 'infer'"):
        specs.ModeKeys.validate("predict")
    config = specs.RunConfig(gpu_memory_fraction=0.5, num_cores=2, save_checkpoints_steps=7, model_dir="m")
    assert config.save_checkpoints_steps == 7 and config.model_dir == "m"
    assert config.session_config.gpu_options.per_process_gpu_memory_fraction == 0.5
    assert config.session_config.intra_op_parallelism_threads == 2
    own = tf.ConfigProto(allow_soft_placement=True)
    assert specs.RunConfig(session_config=own).session_config == own
    with pytest.raises(ValueError, match="describe the cluster in TF_CONFIG"):
        specs.RunConfig(master="grpc://a:1")
