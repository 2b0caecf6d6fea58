"""The wrapper `dgc`, and what becomes of an optimizer's momentum."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.wrappers.dgc import without_momentum


def test_without_a_job_that_compresses_it_is_an_error():
    with tf.Graph().as_default():
        w = tf.get_variable("w", [3], use_resource=True)
        optimizer = mox.get_optimizer_wrapper_fn("dgc", mox.get_optimizer_fn("sgd", 0.1), sparsity_strategy="0.9")()
        with pytest.raises(ValueError, match="--variable_update=distributed_replicated_dgc"):
            optimizer.minimize(tf.nn.l2_loss(w))


def test_bad_settings_are_told_at_once():
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"dgc\(momentum=3\)"):
        mox.get_optimizer_wrapper_fn("dgc", mox.get_optimizer_fn("sgd", 0.1), momentum=3)()


def test_momentum_inside_wrappers_is_taken_out():
    with tf.Graph().as_default():
        opt = tf.train.MomentumOptimizer(0.25, 0.5, use_nesterov=True)
        opt = mox.get_optimizer_wrapper_fn("ema", opt)()
        plain, momentum, nesterov = without_momentum(opt)
        assert plain is opt and type(plain.wrapped) is tf.train.GradientDescentOptimizer
        assert (momentum, nesterov, plain.wrapped._learning_rate) == (0.5, True, 0.25)


def test_other_optimizers_stay():
    with tf.Graph().as_default():
        adam = tf.train.AdamOptimizer()
        assert without_momentum(adam) == (adam, 0.0, False)


def test_a_momentum_that_changes():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="needs a constant number"):
        without_momentum(tf.train.MomentumOptimizer(0.1, tf.constant(0.5)))
