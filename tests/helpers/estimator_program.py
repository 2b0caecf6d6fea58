"""Trains an Estimator in a process of its own: `estimator_program.py MODEL_DIR STEPS SECONDS_PER_BATCH`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorflow.compat.v1 as tf

from helpers.estimator_models import input_fn, make

MODEL_DIR, STEPS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


def slow_input_fn():
    def wait(x):
        time.sleep(SECONDS)
        return x

    def late(x, y):
        (waited,) = tf.py_func(wait, [x], [tf.float32])
        waited.set_shape(x.shape)
        return waited, y

    return input_fn().map(late) if SECONDS else input_fn()


tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.INFO)
make(MODEL_DIR).train(slow_input_fn, max_steps=STEPS)
print("TRAINED", flush=True)
