"""`tf.disable_v2_behavior()` in a script keeps what the step loop is built from."""

from __future__ import annotations

import re

from helpers.launcher import output_of

SCRIPT = """
import sys
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import tensorflow
tensorflow.disable_v2_behavior()
calls = []


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.square(tf.layers.dense(features, 1)[:, 0] - labels))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def input_fn():
    return tf.data.Dataset.from_tensors(([[0.5, 0.25]] * 8, [1.0] * 8)).repeat()


class Count(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        run = session.run
        def counted(fetches, *args, **kwargs):
            calls.append(fetches)
            return run(fetches, *args, **kwargs)
        session.run = counted


estimator = tf.estimator.Estimator(model_fn, sys.argv[1])
estimator.train(input_fn, [Count()], max_steps=500)
print("shape", tf.zeros([2, 3]).shape[1].value, "eager", tf.executing_eagerly())
print("variables", type(tf.Variable(1.0)).__name__, "calls", len(calls))
"""


def test_an_estimator_still_runs_many_steps_per_call(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    output = output_of(script, tmp_path / "model")
    assert "shape 3 eager False" in output
    calls = re.search(r"^variables ResourceVariable calls (\d+)$", output, flags=re.MULTILINE)
    assert calls and int(calls.group(1)) < 100, output
