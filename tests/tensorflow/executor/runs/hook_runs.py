"""Runs of a variable that decreases by 1 per step, with hooks, a loss and data of the test."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf
from line_problem import run

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks.run_hook import RunHook


class Looks(tf.train.SessionRunHook):
    """Wants every step, so that each is a call of its own."""

    def after_run(self, context, values):
        pass


class OpenRun(RunHook):
    """Calls a function with the open run, before its first step.

    Args:
      function: gets the `RunContext`; may return an action.
    """

    in_every_mode = True

    def __init__(self, function):
        super().__init__()
        self._function = function

    def action(self, run):
        return self._function(run)


def numbers(mode, **kwargs):
    data = tf.data.Dataset.range(1000).map(lambda number: tf.cast(number, tf.float32))
    return tf.data.make_one_shot_iterator(data).get_next()


def model(hooks, loss=None, log_info=None):
    """A `model_fn`: `hooks` and `loss` are functions of the batch and of w."""

    def model_fn(inputs, mode, **kwargs):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        value = w if loss is None else loss(inputs[0], w)
        return mox.ModelSpec(loss=value, log_info={"w": w}, hooks=hooks(inputs[0], w))

    return model_fn


def train(hooks, log_dir=None, steps=10, loss=None, **arguments):
    settings = {"input_fn": numbers, "max_number_of_steps": steps, "batch_size": 1}
    settings["log_dir"] = None if log_dir is None else str(log_dir)
    return run(model_fn=model(hooks, loss), **{**settings, **arguments})


def saved(directory, step):
    return float(tf.train.load_checkpoint(str(directory / f"model.ckpt-{step}")).get_tensor("w"))


def saved_steps(directory):
    return sorted(int(path.stem.split("-")[1]) for path in directory.glob("model.ckpt-*.index"))


def best(info, monitor, period=2, **arguments):
    return mox.BestCheckpointHook(info, monitor, 1, period, 1, **arguments)


def bad_at(*numbers):
    """Infinite with the samples of those numbers."""
    return lambda batch: tf.where(tf.reduce_any(tf.equal(batch[0], numbers)), np.inf, 0.0)


def nan_loss(*numbers):
    return lambda batch, w: w + bad_at(*numbers)(batch)
