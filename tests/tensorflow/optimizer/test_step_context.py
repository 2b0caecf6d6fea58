"""The context of a step: nested, and gone afterwards."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.step_context import StepContext, current_context, step_context
from moxing.tensorflow.optimizer.wrappers.batch_gradients import BatchGradientsOptimizer
from moxing.tensorflow.optimizer.wrappers.ema import EmaOptimizer
from moxing.tensorflow.optimizer.wrappers.wrapper import need_step_weight


def test_an_inner_context_keeps_what_it_does_not_set():
    with step_context(workers=2):
        with step_context(weight=0.5):
            assert current_context() == StepContext(workers=2, weight=0.5)
        assert current_context() == StepContext(workers=2)


def test_a_context_ends_with_an_error():
    with pytest.raises(KeyError), step_context(workers=2):
        raise KeyError
    assert current_context() == StepContext()


def test_a_wrapper_inside_of_another_asks_for_the_weight():
    with tf.Graph().as_default():
        plain = tf.train.GradientDescentOptimizer(0.1)
        assert not need_step_weight([plain, EmaOptimizer(plain)])
        assert need_step_weight([plain, EmaOptimizer(BatchGradientsOptimizer(plain, num_batches=2))])
