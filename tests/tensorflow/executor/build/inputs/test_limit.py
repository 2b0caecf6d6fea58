"""The number of samples that an evaluation reads."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from received_inputs import batches_of_inputs, input_config

from moxing.tensorflow.executor.build.inputs import build_inputs
from moxing.tensorflow.executor.specs import ModeKeys


def test_a_limit_is_read_with_the_initializers():
    with tf.Graph().as_default():
        limit = tf.placeholder_with_default(tf.constant(-1, tf.int64), [])
        inputs = build_inputs(input_config(), ModeKeys.EVAL, limit=limit)
        assert len(batches_of_inputs(inputs)) == 5
        assert batches_of_inputs(inputs, feed={limit: 3}) == [[[0, 1]], [[2]]]
        assert batches_of_inputs(inputs, feed={limit: 2}) == [[[0, 1]]]
