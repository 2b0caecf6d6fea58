"""What the tests of loops of steps share."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox


class EveryStep(tf.train.SessionRunHook):
    """Does nothing, and so forces one step per `session.run`."""

    def __init__(self):
        self.steps = 0

    def before_run(self, run_context):
        self.steps += 1


def counting_model(inputs, mode):
    """`total` adds up what it sees; the loss ties the step to it."""
    (numbers,) = inputs
    total = tf.get_variable("total", initializer=0.0)
    seen = tf.reduce_sum(tf.cast(numbers, tf.float32))
    loss = -total * seen + 0.0 * tf.square(total)
    return mox.ModelSpec(loss=loss, log_info={"sum": seen, "length": tf.size(numbers)})
