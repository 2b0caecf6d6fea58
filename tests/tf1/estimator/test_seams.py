"""Where MoXing takes part in the training of an Estimator."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import contextlib
import tempfile
from moxing.tf1.estimator import seams

calls = []


class Recorder:
    def configure(self, config, model_dir):
        return config, model_dir + '/below'

    def warm_start(self, settings):
        return settings

    @contextlib.contextmanager
    def operation(self, estimator, name, arguments):
        calls.append(name)
        yield lambda result: result

    def read_input(self, estimator, input_fn, parse):
        calls.append('input')
        return parse(input_fn())

    def train(self, estimator, spec, listeners, train):
        calls.append(('train', listeners))
        return train(listeners)

    def open_session(self, open_session, arguments):
        calls.append(('session', arguments['is_chief']))
        return open_session(**arguments)


api = seams.connect(Recorder())
import tensorflow.compat.v1 as tf


def model_fn(features, labels, mode):
    weight = tf.get_variable('w', [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(features * weight - (0.0 if labels is None else labels)))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return api.EstimatorSpec(mode, loss=loss, train_op=step, predictions=tf.reshape(weight, [1]))


def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat()


estimator = api.Estimator(model_fn, model_dir=tempfile.mkdtemp())
estimator.train(input_fn, steps=3)
print(calls)
calls.clear()
estimator.evaluate(input_fn, steps=1)
print(calls)
calls.clear()
print(round(float(next(estimator.predict(input_fn))), 3), estimator.latest_checkpoint().rsplit('/', 2)[1:])
print(calls)
"""


def test_training_goes_through_the_trainer_and_evaluation_does_not():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['train', 'input', ('train', []), ('session', True)]",
        "['evaluate']",
        "0.976 ['below', 'model.ckpt-3']",
        "['predict', 'latest_checkpoint']",
    ]
