"""Names of `tensorflow` that are replaced in a script."""

from __future__ import annotations

import re

from helpers.launcher import output_of

SCRIPT = """
import sys
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import tensorflow
x = tf.placeholder(tf.float32, [2])
print("tensor", type(x) is tf.Tensor, isinstance(x + 1, tensorflow.Tensor), isinstance(tf.Variable(1.0), tf.Tensor))
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
    assert "shape 3 eager False" in output and "tensor True True False" in output
    calls = re.search(r"^variables ResourceVariable calls (\d+)$", output, flags=re.MULTILINE)
    assert calls and int(calls.group(1)) < 100, output


def test_with_eager_execution_a_tensor_with_a_value_is_a_tensor(tmp_path):
    script = tmp_path / "eager.py"
    script.write_text(
        "import tensorflow as tf\n"
        "tf.enable_eager_execution()\n"
        "print(isinstance(tf.constant(1), tf.Tensor), tf.executing_eagerly(), tf.constant(3).numpy())\n"
    )
    assert "True True 3" in output_of(script)
