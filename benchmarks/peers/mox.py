"""`mox.run` with its defaults. It takes turns inside its own log lines, so that nothing of the path is changed."""

# isort: skip_file  (moxing sets switches that TensorFlow reads when it is imported)

import logging
import re
import sys
import time

import tensorflow.compat.v1 as tf
from common import arguments, dataset, loss

import moxing.tensorflow as mox

(model, *_), count = arguments()


class TurnTaking(logging.Handler):
    """At every round's last step: reports the time of the round, then waits for its next turn."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0
        self._started = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        match = re.match(r"step: (\d+)\(", record.getMessage())
        if match is None or int(match.group(1)) < self._next:
            return
        if self._next:
            print(f"@{(time.perf_counter() - self._started) / count}", flush=True)
        else:
            print("@ready", flush=True)
        self._next = int(match.group(1)) + count
        sys.stdin.readline()
        self._started = time.perf_counter()


logging.getLogger("tensorflow").addHandler(TurnTaking())


def input_fn(mode):
    return tf.data.make_one_shot_iterator(dataset(tf, model)).get_next()


def model_fn(inputs, mode):
    value = loss(tf, model, *inputs)
    return mox.ModelSpec(loss=value, log_info={"loss": value})


mox.run(
    input_fn=input_fn,
    model_fn=model_fn,
    optimizer_fn=mox.get_optimizer_fn("sgd", 0.5 if model == "softmax" else 0.01),
    run_mode=mox.ModeKeys.TRAIN,
    max_number_of_steps=10**9,
)
