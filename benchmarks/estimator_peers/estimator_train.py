"""An Estimator with its defaults: on TensorFlow 2.15 as it is, here with `moxing run`.

    estimator_train.py NAME RECORDS WARM_UP STEPS

The times are those of its log lines: a hook of our own would ask for every step.
"""

import logging
import re
import sys
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from common import WORKS, Moment, Timed, dataset, report
from models import train_op

name, path, warm_up, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tf.disable_v2_behavior()
parameters = []


class Clock(logging.Handler):
    """Records the times of the log lines that follow a step."""

    def __init__(self):
        super().__init__()
        self.times = []

    def emit(self, record):
        # After the first step, then every `log_every` steps. The number in the line may be the next one already.
        if re.match(r"loss = .*, step = \d+", record.getMessage()):
            self.times.append(Moment.now())


def model_fn(features, labels, mode):
    loss, step = train_op(tf, name, features, labels)
    parameters.append(sum(int(np.prod(variable.shape.as_list())) for variable in tf.trainable_variables()))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


clock = Clock()
tf.logging.set_verbosity(tf.logging.INFO)
logging.getLogger("tensorflow").addHandler(clock)
with tempfile.TemporaryDirectory() as model_dir:
    config = tf.estimator.RunConfig(model_dir, log_step_count_steps=WORKS[name].log_every)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    started = Moment.now()
    estimator.train(lambda: dataset(tf, name, path), max_steps=warm_up + steps + 1)
begin, end = (clock.times[count // WORKS[name].log_every] for count in (warm_up, warm_up + steps))
report(Timed(started, clock.times[0]), Timed(begin, end, steps), parameters[0])
