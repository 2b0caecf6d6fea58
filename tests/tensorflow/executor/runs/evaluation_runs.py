"""Trainings with evaluations: their data, hooks, log lines and decisions."""

from __future__ import annotations

import json
import re

import tensorflow.compat.v1 as tf
from line_problem import sgd

import moxing.tensorflow as mox


class Recorder:
    """Stands for the run: notes what a hook does to it."""

    def __init__(self):
        self.done = []

    def stop(self, why):
        self.done.append("stop")

    def scale_learning_rate(self, factor):
        self.done.append(round(factor, 9))

    def keep_best(self):
        self.done.append("keep")

    def restore_best(self):
        self.done.append("restore")


def decisions(kind, values, **arguments):
    """What the hook does after each of the values."""
    with tf.Graph().as_default():
        monitor = arguments.pop("monitor", "accuracy")
        hook = kind({monitor: tf.constant(0.0)}, monitor, batch_size=1, samples_in_train=1, **arguments)
    done = []
    for step, value in enumerate(values):
        recorder = Recorder()
        hook.evaluated(step, {monitor: value}, recorder)
        done.append(recorder.done)
        # What was remembered in between is all that there is to know.
        state = json.loads(json.dumps(hook.state()))
        with tf.Graph().as_default():
            hook = kind({monitor: tf.constant(0.0)}, monitor, batch_size=1, samples_in_train=1, **arguments)
        hook.load_state(state)
    return done


NONE, STOP = [], ["stop"]


def evaluated(caplog, prefix):
    """Step and metrics of the lines with a prefix."""
    lines = [record.getMessage() for record in caplog.records]
    pattern = re.compile(rf"{re.escape(prefix)} step: (\d+) (.*)")
    return [(int(match[1]), match[2]) for line in lines if (match := pattern.fullmatch(line))]


def numbers(count, repeat=False):
    dataset = tf.data.Dataset.range(count).map(lambda number: tf.cast(number, tf.float32))
    return (dataset.repeat() if repeat else dataset).make_one_shot_iterator().get_next()


def two_sets(mode, **kwargs):
    """Endless numbers below 1000 for training, those below 10 for evaluation."""
    return numbers(1000, repeat=True) if mode == mox.ModeKeys.TRAIN else numbers(10)


def run(hooks, log_dir=None, steps=20, optimizer_fn=None, input_fn=two_sets, inter_mode="EVAL", **arguments):
    """Trains the line problem; `hooks` makes hooks of the batch and of w."""

    def model_fn(inputs, mode, **kwargs):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        return mox.ModelSpec(loss=w, log_info={"w": w}, hooks=hooks(inputs[0], w))

    settings = {
        "batch_size": 4,
        "optimizer_fn": optimizer_fn or sgd(),
        "run_mode": "TRAIN",
        "max_number_of_steps": steps,
        "log_dir": None if log_dir is None else str(log_dir),
    }
    return mox.run(input_fn=input_fn, model_fn=model_fn, inter_mode=inter_mode, **{**settings, **arguments})


def log_hook(samples=None, prefix="[V]", period=10, epochs=1):
    return lambda batch, w: [
        mox.LogEvaluationMetricHook(
            {"mean": tf.reduce_mean(batch), "w": w},
            4,
            4 * period,
            samples,
            evaluate_every_n_epochs=epochs,
            prefix=prefix,
        )
    ]
