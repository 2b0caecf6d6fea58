"""The same regression as a 2018 script, for `moxing run`: start-up time and memory."""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

import logging
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tensorflow as tf
from common import dataset, loss, report_first_step

import moxing.tensorflow as mox

moments = []


class FirstLine(logging.Handler):
    def emit(self, record):
        if not moments and record.getMessage().startswith("step: 0("):
            moments.append(time.time())


logging.getLogger("tensorflow").addHandler(FirstLine())


def input_fn(mode):
    return dataset(tf, "softmax").make_one_shot_iterator().get_next()


def model_fn(inputs, mode):
    value = loss(tf, "softmax", *inputs)
    return mox.ModelSpec(loss=value, log_info={"loss": value})


mox.run(
    input_fn=input_fn,
    model_fn=model_fn,
    optimizer_fn=mox.get_optimizer_fn("sgd", 0.5),
    run_mode=mox.ModeKeys.TRAIN,
    max_number_of_steps=200,
)
report_first_step(moments[0])
