"""A factor of the learning rate, inside of wrappers too."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.factory import get_optimizer_fn
from moxing.tensorflow.optimizer.rate_factor import rate_factor, rate_given, rate_of, with_factor
from moxing.tensorflow.optimizer.wrappers.factory import get_optimizer_wrapper_fn


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw", "rmsprop"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_factor_scales_the_rate(name, wrapped):
    with tf.Graph().as_default(), tf.Session() as session:
        fn = get_optimizer_fn(name, learning_rate=lambda: tf.constant(0.5))
        factor = rate_factor()
        optimizer = with_factor(get_optimizer_wrapper_fn("ema", fn) if wrapped else fn, factor)()
        optimizer.minimize(tf.get_variable("w", initializer=1.0, use_resource=True))
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        assert session.run(rate_of(optimizer)) == 0.5
        session.run(factor.assign(0.25).op)
        assert session.run(rate_of(optimizer)) == 0.125


def test_the_factor_is_a_summary_and_in_no_checkpoint():
    with tf.Graph().as_default(), tf.Session() as session:
        rate_factor("nan_guard_factor")
        assert tf.global_variables() == []
        session.run(tf.local_variables_initializer())
        summary = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    assert [(value.tag, value.simple_value) for value in summary.value] == [("nan_guard_factor", 1.0)]


class Hidden(tf.train.Optimizer):
    def __init__(self):
        super().__init__(False, "Hidden")


def test_an_optimizer_that_keeps_its_rate_elsewhere():
    with tf.Graph().as_default():
        assert rate_given(Hidden()) is None and rate_of(Hidden()) is None
        with pytest.raises(NotImplementedError, match="Hidden"):
            with_factor(Hidden, rate_factor())()
