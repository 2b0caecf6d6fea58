"""A linear regression on several towers, and the same computed by NumPy."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox

UPDATES = ("parameter_server", "replicated", "replicated_host")
RATE, MOMENTUM, DECAY = 0.1, 0.9, 0.01
random = np.random.RandomState(0)
ROWS = random.rand(50, 3).astype(np.float32)
VALUES = (ROWS @ [1, -2, 3] + 0.5 + random.rand(50) / 10).astype(np.float32)


def samples(mode, epochs=2):
    return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices((ROWS, VALUES)).repeat(epochs)).get_next()


def batches(mode):
    data = tf.data.Dataset.from_tensor_slices((ROWS, VALUES)).repeat(2).batch(7)
    return tf.data.make_one_shot_iterator(data).get_next()


def model_fn(inputs, mode, hooks=None):
    x, y = inputs
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer(), regularizer=lambda v: DECAY * tf.nn.l2_loss(v))
    b = tf.Variable(0.0, name="b")
    error = tf.squeeze(tf.matmul(x, w), 1) + b - y
    loss = tf.reduce_mean(tf.square(error)) + tf.add_n(tf.losses.get_regularization_losses())
    info = {"loss": loss, "size": tf.shape(x)[0], "y": tf.reduce_mean(y)}
    return mox.ModelSpec(loss=loss, log_info=info, output_info={"y": y}, hooks=hooks)


def momentum():
    return tf.train.MomentumOptimizer(RATE, MOMENTUM)


def run(mode="TRAIN", gpus=2, update=None, **arguments):
    mox.set_flag("num_gpus", gpus)
    mox.set_flag("variable_update", update)
    settings = {
        "input_fn": samples,
        "model_fn": model_fn,
        "optimizer_fn": momentum,
        "run_mode": mode,
        "batch_size": 7,
        "max_number_of_steps": 10**6,
        "log_every_n_steps": 0,
    }
    return mox.run(**{**settings, **arguments})


class Reference:
    """The same mathematics in NumPy.

    Args:
      epochs: how often the data is gone through.
    """

    def __init__(self, epochs=2):
        self.x, self.y = np.tile(ROWS.astype(np.float64), [epochs, 1]), np.tile(VALUES.astype(np.float64), epochs)
        self.place, self.w, self.b = 0, np.zeros(3), 0.0
        self.slots = [np.zeros(3), 0.0]
        self.of_first, self.of_all = [], []  # the losses that are logged

    def train(self, towers, batch=7, steps=10**6):
        while self.place < len(self.x) and steps:
            taken = slice(self.place, self.place + towers * batch)
            x, y = self.x[taken], self.y[taken]
            error = x @ self.w + self.b - y
            decay = DECAY * (self.w**2).sum() / 2
            self.of_first.append((error[:batch] ** 2).mean() + decay)
            self.of_all.append((error**2).mean() + decay)
            gradients = [2 * x.T @ error / len(x) + DECAY * self.w, 2 * error.mean()]
            self.slots = [MOMENTUM * slot + gradient for slot, gradient in zip(self.slots, gradients, strict=True)]
            self.w, self.b = self.w - RATE * self.slots[0], self.b - RATE * self.slots[1]
            self.place += towers * batch
            steps -= 1
        return self

    def check(self, directory):
        saved = checkpoint(directory)
        assert set(saved) == {"w", "b", "w/Momentum", "b/Momentum", "global_step"}
        assert saved["global_step"] == len(self.of_first)
        for name, value in {"w": self.w, "b": self.b, "w/Momentum": self.slots[0], "b/Momentum": self.slots[1]}.items():
            np.testing.assert_allclose(np.squeeze(saved[name]), value, rtol=1e-5, atol=1e-5, err_msg=name)


def checkpoint(directory):
    reader = tf.train.load_checkpoint(str(directory))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def summaries(directory, tag):
    """The values of a scalar in the order of the steps."""
    found = [
        (event.step, value.simple_value)
        for path in sorted(directory.glob("events*"))
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == tag
    ]
    assert [step for step, _ in found] == sorted({step for step, _ in found})
    return [value for _, value in found]
