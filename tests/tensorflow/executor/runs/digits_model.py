"""A small problem that the executor's tests share: shuffled data, two dense layers, Adam. No random operations."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox

_RANDOM = np.random.RandomState(0)
FEATURES = _RANDOM.rand(500, 20).astype(np.float32)
LABELS = _RANDOM.randint(0, 3, 500)


def input_fn(mode):
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS))
    if mode == mox.ModeKeys.TRAIN:
        dataset = dataset.shuffle(200).repeat()
    features, label = tf.data.make_one_shot_iterator(dataset).get_next()
    return features * 2.0 - 1.0, label


def model_fn(inputs, mode):
    features, labels = inputs
    hidden = tf.layers.dense(features, 16, tf.nn.relu, name="hidden")
    logits = tf.layers.dense(hidden, 3, name="logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return mox.ModelSpec(
        loss=loss,
        log_info={"loss": loss},
        output_info={"logits": logits},
        export_spec=mox.ExportSpec(inputs_dict={"features": features}, outputs_dict={"logits": logits}),
    )


def train(log_dir, steps, **kwargs):
    """Trains to `steps`."""
    arguments = {
        "input_fn": input_fn,
        "model_fn": model_fn,
        "optimizer_fn": mox.get_optimizer_fn("adam", 0.01),
        "run_mode": mox.ModeKeys.TRAIN,
        "batch_size": 16,
        "log_dir": None if log_dir is None else str(log_dir),
        "max_number_of_steps": steps,
        **kwargs,
    }
    return mox.run(**arguments)


def evaluate(checkpoint_path, **kwargs):
    """Evaluates on all samples."""
    arguments = {
        "input_fn": input_fn,
        "model_fn": model_fn,
        "run_mode": mox.ModeKeys.EVAL,
        "batch_size": 16,
        "checkpoint_path": str(checkpoint_path),
        "max_number_of_steps": 10**9,
        **kwargs,
    }
    return mox.run(**arguments)


def weights(path):
    """All variables of a checkpoint by name."""
    reader = tf.train.NewCheckpointReader(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def prefixes(log_dir):
    return sorted(int(path.stem.split("-")[1]) for path in log_dir.glob("model.ckpt-*.index"))


def assert_same_weights(left, right):
    left, right = weights(left), weights(right)
    assert left.keys() == right.keys()
    for name, value in left.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)
