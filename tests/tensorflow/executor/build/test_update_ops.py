"""Update operations such as the moving averages of batch normalisation."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from line_problem import sgd
from small_runs import run, saved, scalar

import moxing.tensorflow as mox

# The functions of tf.layers and the cells of tf.nn.rnn_cell say that they are deprecated.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.tf\.layers\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.tf\.nn\.rnn_cell\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.layer\.(add_variable|apply). is deprecated:UserWarning"),
]

tf.keras.layers  # noqa: B018  (imported now, so that every test finds the same state)


def keras_norm(x, training):
    return tf.keras.layers.BatchNormalization(momentum=0.5, name="norm")(x, training=training)


def layers_norm(x, training):
    return tf.layers.batch_normalization(x, momentum=0.5, training=training, name="norm")


@pytest.mark.slow
def test_keras_first_imported_in_model_fn():
    """In a new process, where `tf.keras` is first touched while the model is built."""
    code = """
import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf

def model_fn(inputs, mode):
    layer = tf.keras.layers.BatchNormalization(momentum=0.5)
    loss = tf.reduce_mean(layer(inputs[0], training=True)) + tf.get_variable('w', initializer=0.0)
    return mox.ModelSpec(loss=loss, log_info={'mean': tf.reduce_sum(layer.moving_mean.read_value())})

result = mox.run(
    input_fn=lambda mode: tf.constant([8.0]), model_fn=model_fn, run_mode='TRAIN', batch_size=2,
    optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.1), max_number_of_steps=3,
)
print('mean', result.log_info['mean'])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # 6 before and 7 after the third update; a mean that never moved is 0.
    assert done.stdout.split()[-2:] in (["mean", "6.0"], ["mean", "7.0"])


@pytest.mark.parametrize("norm", [keras_norm, layers_norm])
def test_moving_averages_move_in_train_only(norm, tmp_path):
    data = np.array([[0.0], [2.0], [4.0], [10.0]], np.float32)  # batch means 1 and 7, variances 1 and 9

    def input_fn(mode):
        return tf.data.Dataset.from_tensor_slices(data).repeat().make_one_shot_iterator().get_next()

    def model_fn(inputs, mode):
        y = norm(inputs[0], mode == mox.ModeKeys.TRAIN)
        loss = tf.reduce_mean(y) + 0.0 * scalar()
        return mox.ModelSpec(loss=loss, log_info={"y": tf.reduce_mean(y)})

    settings = {"input_fn": input_fn, "model_fn": model_fn, "log_dir": tmp_path}
    run(**settings, optimizer_fn=sgd(0.0), max_number_of_steps=3)
    weights = saved(tmp_path)
    mean = variance = None
    for name, value in weights.items():
        if name.endswith("moving_mean"):
            mean = float(value[0])
        if name.endswith("moving_variance"):
            variance = float(value[0])
    expected_mean, expected_variance = 0.0, 1.0
    for batch_mean, batch_variance in ((1, 1), (7, 9), (1, 1)):
        expected_mean = 0.5 * expected_mean + 0.5 * batch_mean
        expected_variance = 0.5 * expected_variance + 0.5 * batch_variance
    assert mean == pytest.approx(expected_mean, rel=1e-5)
    assert variance == pytest.approx(expected_variance, rel=1e-5)

    result = run("EVAL", **settings, max_number_of_steps=2)
    y = (data.mean() - expected_mean) / np.sqrt(expected_variance + 1e-3)
    assert result.log_info["y"] == pytest.approx(y, rel=1e-4)
    again = run("EVAL", **settings, max_number_of_steps=2)
    assert again.log_info == result.log_info


def test_update_ops_of_the_user_run_with_every_step(tmp_path):
    def model_fn(inputs, mode):
        count = tf.get_variable("count", initializer=0.0, trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0))
        return mox.ModelSpec(loss=scalar())

    run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=13)
    assert saved(tmp_path)["count"] == 13
