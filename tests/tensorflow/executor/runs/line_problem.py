"""The smallest run there is: a variable that goes down by 1 a step. Tests change what they are about."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox


def sgd(rate: float = 1.0):
    return lambda: tf.train.GradientDescentOptimizer(rate)


def step_rate():
    """1 in step 0, 2 in step 1 and so on."""
    return tf.cast(tf.train.get_global_step(), tf.float32) + 1.0


def number_input(mode, **kwargs):
    return tf.data.Dataset.range(1000).make_one_shot_iterator().get_next()


def line_model(inputs, mode, **kwargs):
    """`w` goes down by 1 a step with `sgd(1.0)`."""
    w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
    return mox.ModelSpec(loss=w, log_info={"w": w}, output_info={"w": w})


def run(mode: Any = "TRAIN", **arguments: Any) -> mox.RunResult:
    """`mox.run` on this problem with some arguments replaced."""
    settings = {
        "input_fn": number_input,
        "model_fn": line_model,
        "optimizer_fn": sgd(),
        "run_mode": mode,
        "batch_size": 2,
        "max_number_of_steps": 3,
    }
    return mox.run(**{**settings, **arguments})
