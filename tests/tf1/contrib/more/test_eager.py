"""tf.contrib.eager in a program that executes eagerly."""

from __future__ import annotations

import textwrap

import pytest

from helpers.launcher import output_of
from moxing.tf1.contrib.more import eager

PROGRAM = """
    import tensorflow as tf
    import tensorflow.contrib.eager as tfe
    from tensorflow.contrib.eager.python import tfe as again
    assert tfe is again
    tfe.enable_eager_execution()
    assert tfe.in_eager_mode() and not tfe.in_graph_mode() and tfe.num_gpus() >= 0 and tfe.list_devices()
    w = tfe.Variable(2.0, name='w')
    grad = tfe.implicit_gradients(lambda x: (w * x) ** 2)(3.0)
    assert float(grad[0][0]) == 36.0 and grad[0][1] is w
    value, pairs = tfe.implicit_value_and_gradients(lambda x: w * x)(5.0)
    assert float(value) == 10.0 and float(pairs[0][0]) == 5.0
    assert float(tfe.gradients_function(lambda x: x * x)(3.0)[0]) == 6.0
    total = 0
    for number in tfe.Iterator(tf.data.Dataset.range(4)):
        total += int(number)
    assert total == 6 and int(tfe.Iterator(tf.data.Dataset.range(2)).next()) == 0
    mean = tfe.metrics.Mean()
    mean([1.0, 2.0]); mean([6.0])
    assert float(mean.result()) == 3.0
    saver = tfe.Saver([w])
    path = saver.save('./model', global_step=1)
    w.assign(7.0)
    saver.restore(path)
    assert float(w) == 2.0
    assert int(tfe.defun(lambda x: x + 1)(tf.constant(1))) == 2
    assert int(tfe.py_func(lambda x: x + 1, [1], tf.int32)) == 2
    try:
        class Net(tfe.Network):
            pass
        Net()
    except NotImplementedError as error:
        print(error)
"""


def test_a_program(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(PROGRAM))
    last = "tf.contrib.eager.Network is not available: eager execution is part of TensorFlow 2."
    # The other line is a warning of TensorFlow's Saver.
    assert output_of(script).splitlines()[0] == last


def test_an_iterator_needs_eager_execution():
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="tfe.Iterator needs eager execution"):
        eager.Iterator(tf.data.Dataset.range(1))
