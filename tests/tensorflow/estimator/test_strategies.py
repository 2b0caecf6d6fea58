"""Strategies of an Estimator: --num_gpus, those of the user, and those that are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from helpers.estimator_models import X, Y, assert_equal, input_fn, make, weights
from helpers.launcher import output_of
from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow import estimator

pytestmark = pytest.mark.filterwarnings("ignore:To make it possible to preserve tf.data options")
TWO_CPUS = tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)


@pytest.fixture(autouse=True)
def graph_mode():
    """In eager mode a strategy looks for its devices when it is made."""
    with tf.Graph().as_default():
        yield


def two_cpus():
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


@pytest.mark.slow
def test_num_gpus_becomes_a_mirrored_strategy(tmp_path, caplog):
    FLAGS.set("num_gpus", 2)
    one = make(tmp_path)
    strategy = one.config.train_distribute
    assert isinstance(strategy, tf.distribute.MirroredStrategy) and strategy.num_replicas_in_sync == 2
    assert "--num_gpus=2, but this machine has 0" in caplog.text
    one.train(input_fn, max_steps=30)
    assert weights(tmp_path)["global_step"] == 30
    # Two batches a step.
    assert json.loads((tmp_path / "model.ckpt-25.moxing.json").read_text())["elements"] == 50
    assert estimator.Estimator(lambda features: None).config.train_distribute.num_replicas_in_sync == 2


def test_a_step_averages_the_gradients_of_its_replicas(tmp_path):
    """Two batches of 50 on two replicas are one batch of 100."""

    def model_fn(features, labels, mode):
        logits = tf.layers.dense(features, 2, kernel_initializer=tf.zeros_initializer())
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    for name, batch, gpus in (("two", 50, 2), ("one", 100, 1)):
        FLAGS.set("num_gpus", gpus)
        data = lambda batch=batch: tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(batch)  # noqa: E731
        estimator.Estimator(model_fn, str(tmp_path / name)).train(data, steps=10)
    two, one = weights(tmp_path / "two"), weights(tmp_path / "one")
    np.testing.assert_allclose(two["dense/kernel"], one["dense/kernel"], rtol=1e-4)


@pytest.mark.parametrize("count", [0, 1])
def test_one_gpu_needs_no_strategy(tmp_path, count):
    FLAGS.set("num_gpus", count)
    assert make(tmp_path).config.train_distribute is None


def test_the_strategy_of_the_user_wins(tmp_path):
    FLAGS.set("num_gpus", 3)
    one = make(tmp_path, train_distribute=tf.distribute.OneDeviceStrategy("/cpu:0"))
    assert type(one.config.train_distribute).__name__ == "OneDeviceStrategyV1"


def test_wrong_numbers_and_jobs(tmp_path, monkeypatch):
    FLAGS.set("num_gpus", -1)
    with pytest.raises(FlagError, match="--num_gpus=-1: expected 1 or more"):
        make(tmp_path)
    FLAGS.set("num_gpus", 2)
    cluster = {"chief": ["a:1"], "ps": ["b:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    with pytest.raises(ValueError, match=r"--num_gpus=2 in a job of 2 processes: .* one worker for each GPU"):
        make(tmp_path)


@pytest.mark.slow
def test_the_flag_of_the_command_line(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import tensorflow as tf\n"
        "one = tf.estimator.Estimator(lambda features: None, config=tf.estimator.RunConfig())\n"
        "print('REPLICAS', one.config.train_distribute.num_replicas_in_sync)\n"
    )
    assert "REPLICAS 2" in output_of(script, "--num_gpus=2")


@pytest.mark.slow
def test_a_training_with_a_strategy_resumes_bit_for_bit(tmp_path):
    config = {"session_config": TWO_CPUS, "train_distribute": two_cpus()}

    class Dies(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if run_context.session.run(tf.train.get_global_step()) == 40:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make(tmp_path / "model", **config).train(input_fn, max_steps=60, hooks=[Dies()])
    assert weights(tmp_path / "model")["global_step"] == 25
    make(tmp_path / "model", **config).train(input_fn, max_steps=60)
    make(tmp_path / "whole", **config).train(input_fn, max_steps=60)
    assert_equal(weights(tmp_path / "model"), weights(tmp_path / "whole"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        two_cpus,
        lambda: tf.compat.v2.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
        lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
        lambda: tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0"),
        lambda: tf.distribute.experimental.MultiWorkerMirroredStrategy(),
        lambda: tf.distribute.experimental.ParameterServerStrategy(),
    ],
    ids=["mirrored", "mirrored_v2", "one_device", "central", "multi_worker", "parameter_server"],
)
def test_strategies_of_one_process(tmp_path, strategy):
    one = make(tmp_path, train_distribute=strategy(), eval_distribute=strategy(), session_config=TWO_CPUS)
    one.train(input_fn, max_steps=30)
    assert one.evaluate(lambda: input_fn().take(4))["global_step"] == 30


def test_strategies_that_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"RunConfig\(eval_distribute=_DefaultDistributionStrategy\).*Leave it out"):
        make(tmp_path, eval_distribute=tf.distribute.get_strategy())
    with pytest.raises(ValueError, match=r"RunConfig\(train_distribute=TPUStrategyV1\) is not available: .* TPU"):
        make(tmp_path, train_distribute=object.__new__(tf.distribute.experimental.TPUStrategy))
    # In graph mode it cannot even be created.
    with pytest.raises(ValueError, match=r"Please use `tf.compat.v1.distribute.experimental.ParameterServerStrategy`"):
        make(tmp_path, train_distribute=object.__new__(tf.compat.v2.distribute.ParameterServerStrategy))
    cluster = {"chief": ["a:1"], "worker": ["b:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    with pytest.raises(ValueError, match=r"RunConfig\(train_distribute=MirroredStrategyV1\) in a job of 2 processes"):
        make(tmp_path, train_distribute=two_cpus())
