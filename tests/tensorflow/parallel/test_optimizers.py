"""Creating and applying the user's optimizers."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.parallel.loss_scale import FixedLossScale
from moxing.tensorflow.parallel.optimizers import UpdateOptions, apply_all, clip_and_apply, make_optimizer


def sgd():
    return tf.train.GradientDescentOptimizer(1.0)


def test_what_optimizer_fn_may_return():
    assert isinstance(make_optimizer(sgd), tf.train.GradientDescentOptimizer)
    with pytest.raises(TypeError, match="optimizer_fn returned None: expected a tf.train.Optimizer"):
        make_optimizer(lambda: None)


def test_a_learning_rate_of_another_graph():
    with tf.Graph().as_default():
        rate = tf.constant(0.1, name="rate")
    message = "The learning rate of optimizer_fn, rate:0, was created outside of it"
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make_optimizer(lambda: tf.train.GradientDescentOptimizer(rate))


def stepped(build):
    """The values of v, w and global_step after one step with gradients 1 and -3."""
    with tf.Graph().as_default(), tf.Session() as session:
        v, w = (tf.get_variable(name, initializer=0.0) for name in "vw")
        step = tf.train.get_or_create_global_step()
        op = build([[(tf.constant(1.0), v)], [(tf.constant(-3.0), w)]], step)
        session.run(tf.global_variables_initializer())
        session.run(op)
        return session.run([v, w, step])


def test_all_optimizers_and_one_count():
    assert stepped(lambda groups, step: apply_all([sgd(), sgd()], groups, step)) == [-1, 3, 1]
    assert stepped(lambda groups, step: apply_all([sgd(), sgd()], groups, None)) == [-1, 3, 0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (UpdateOptions(), [-1, 2, 1]),
        (UpdateOptions(clip=False), [-1, 3, 1]),
        (UpdateOptions(advance_global_step=False), [-1, 2, 0]),
    ],
)
def test_clipping_and_counting_can_be_switched_off(options, expected):
    mox.set_flag("gradient_clip_type", "value")
    mox.set_flag("gradient_clip", 2.0)

    def build(groups, step):
        return clip_and_apply([sgd(), sgd()], groups, FixedLossScale(1.0), [], step, options)

    assert stepped(build) == expected
