"""A hand-written loop with one `session.run` per step, as in TensorFlow 1 tutorials."""

import os
import sys
import time

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import tensorflow.compat.v1 as tf
from common import arguments, dataset, loss, report, report_first_step

tf.disable_eager_execution()
(model, *_), count = arguments()
iterator = tf.data.make_initializable_iterator(dataset(tf, model))
value = loss(tf, model, *iterator.get_next())
train = tf.train.GradientDescentOptimizer(0.5 if model == "softmax" else 0.01).minimize(
    value, global_step=tf.train.get_or_create_global_step()
)
session = tf.Session()
session.run([tf.global_variables_initializer(), iterator.initializer])


def run_steps(steps: int) -> None:
    for _ in range(steps):
        session.run([train, value])


run_steps(1)
first_step = time.time()
if "--once" in sys.argv:
    run_steps(199)
    report_first_step(first_step)
else:
    report(run_steps, count)
