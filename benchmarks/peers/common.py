"""Shared by the step programs: the data, the clock, and the models as TensorFlow 1 code."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

BATCH = 100


def arguments() -> tuple[list[str], int]:
    """Return the arguments of the command line and the steps of a round."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    counts = [int(word.split("=")[1]) for word in sys.argv[1:] if word.startswith("--steps=")]
    return words, counts[0] if counts else 1000


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return images of MNIST size and labels."""
    random = np.random.RandomState(0)
    return random.rand(12000, 784).astype(np.float32), np.eye(10, dtype=np.float32)[random.randint(0, 10, 12000)]


def warm_up(count: int) -> int:
    """Return the number of warm-up steps, in which buffers fill and threads settle."""
    return max(count // 4, 10)


def report(function, count: int) -> None:
    """Call `function(steps)` to warm up, then once more with the clock; print seconds per step."""
    function(warm_up(count))
    started = time.perf_counter()
    function(count)
    print(f"@{(time.perf_counter() - started) / count}", flush=True)


def report_first_step(moment: float) -> None:
    """Print when the first step ended, and the peak memory, for the start-up measurement."""
    print(f"@{moment} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}", flush=True)


def dataset(tf, model: str):
    """Return the input of a model."""
    if model in ("softmax", "dense"):
        data = tf.data.Dataset.from_tensor_slices(digits()).shuffle(10000).repeat().batch(BATCH)
        return data.prefetch(2)
    images = np.random.RandomState(0).rand(96, 64, 64, 3).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[np.arange(96) % 10]
    return tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(48).prefetch(2)


def loss(tf, model: str, x, y):
    """Return the loss of a model, in TensorFlow 1 code."""
    if model == "softmax":
        weights = tf.get_variable("W", initializer=tf.zeros([784, 10]))
        bias = tf.get_variable("b", initializer=tf.zeros([10]))
        logits = tf.matmul(x, weights) + bias
    elif model == "dense":
        for index in range(2):
            x = tf.nn.relu(tf.matmul(x, tf.get_variable(f"W{index}", [x.shape[-1], 512])))
        logits = tf.matmul(x, tf.get_variable("W", [512, 10]))
    else:
        for index, channels in enumerate((32, 64, 128)):
            kernel = tf.get_variable(f"kernel{index}", [3, 3, x.shape[-1], channels])
            x = tf.nn.relu(
                tf.nn.conv2d(x, kernel, strides=[1, 2 if index else 1, 2 if index else 1, 1], padding="SAME")
            )
        logits = tf.matmul(tf.reduce_mean(x, [1, 2]), tf.get_variable("W", [128, 10]))
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
