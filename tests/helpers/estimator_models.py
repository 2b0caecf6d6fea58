"""A small classifier on shuffled data, with seeded dropout on request: every step can be compared bit for bit."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow import estimator

_RANDOM = np.random.RandomState(0)
X = _RANDOM.rand(300, 6).astype(np.float32)
Y = (X.sum(1) > 3).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(300).repeat().batch(16)


def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features, 8, tf.nn.relu)
    if params["dropout"]:
        hidden = tf.layers.dropout(hidden, 0.5, training=mode == estimator.ModeKeys.TRAIN, seed=3)
    logits = tf.layers.dense(hidden, 2)
    if mode == estimator.ModeKeys.PREDICT:
        return estimator.EstimatorSpec(mode, {"p": tf.nn.softmax(logits)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels), tf.float32))
    tf.summary.scalar("right", right)
    step = tf.train.AdamOptimizer(0.02).minimize(loss, tf.train.get_global_step())
    hooks = [make(right, logits) for make in params.get("hooks", ())]
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return estimator.EstimatorSpec(mode, None, loss, step, metrics, training_hooks=hooks)


def make(model_dir, *hooks, dropout=False, **config):
    config = {"save_checkpoints_steps": 25, "tf_random_seed": 5, **config}
    run_config = estimator.RunConfig(model_dir=str(model_dir), **config)
    return estimator.Estimator(model_fn, config=run_config, params={"hooks": hooks, "dropout": dropout})


def weights(model_dir):
    reader = tf.train.load_checkpoint(str(model_dir))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_equal(one, other):
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)
