"""`mox.run` with its defaults; its log lines give the times.

With the argument `accumulate`, the mean of the gradients is applied every eighth step.
"""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

import logging
import re
import time

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf
from common import arguments, dataset, loss, warm_up

(model, *words), count = arguments()
begin = warm_up(count) // 10 * 10


class Clock(logging.Handler):
    """Records the time at two log lines."""

    def __init__(self) -> None:
        super().__init__()
        self._times = {}

    def emit(self, record: logging.LogRecord) -> None:
        match = re.match(r"step: (\d+)\(", record.getMessage())
        if match is None or int(match.group(1)) not in (begin, begin + count):
            return
        self._times[int(match.group(1))] = time.perf_counter()
        if len(self._times) == 2:
            print(f"@{(self._times[begin + count] - self._times[begin]) / count}", flush=True)


logging.getLogger("tensorflow").addHandler(Clock())


def input_fn(mode):
    return tf.data.make_one_shot_iterator(dataset(tf, model)).get_next()


def model_fn(inputs, mode):
    value = loss(tf, model, *inputs)
    return mox.ModelSpec(loss=value, log_info={"loss": value})


optimizer_fn = mox.get_optimizer_fn("sgd", 0.5 if model == "softmax" else 0.01)
if "accumulate" in words:
    optimizer_fn = mox.get_optimizer_wrapper_fn("batch_gradients", optimizer_fn, num_batches=8)

mox.run(
    input_fn=input_fn,
    model_fn=model_fn,
    optimizer_fn=optimizer_fn,
    run_mode=mox.ModeKeys.TRAIN,
    max_number_of_steps=begin + count + 1,
)
