"""Hooks that feed placeholders."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tower_runs import checkpoint, model_fn, run

import moxing.tensorflow as mox


def test_placeholders_are_fed_on_every_tower(tmp_path):
    """Each tower its own, as in the manual's placeholder case; and one that all share."""
    towers = []

    def fed(inputs, mode):
        index = len(towers)
        towers.append(index)
        target = tf.placeholder(tf.float32, [], name="target")
        rate = tf.get_default_graph().get_collection("rate") or [tf.placeholder(tf.float32, [], name="rate")]
        if not tf.get_collection("rate"):
            tf.add_to_collection("rate", rate[0])
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = rate[0] * tf.square(w - target) / 2
        feeds = {target: 2.0 + 4 * index, rate[0]: np.float32(1.0)}
        return mox.ModelSpec(loss=loss, hooks=[mox.executor.hooks.FeedSessionRunHook(feed_dict=feeds)])

    run(
        input_fn=lambda mode: tf.constant([0.0]),
        model_fn=fed,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(1.0),
        auto_batch=False,
        log_dir=str(tmp_path),
        max_number_of_steps=1,
    )
    assert checkpoint(tmp_path)["w"] == 4.0


def test_two_hooks_that_feed_one_tensor_differently():
    def fed(inputs, mode):
        spec = model_fn(inputs, mode)
        factor = tf.placeholder_with_default(1.0, [])
        hooks = [mox.executor.hooks.FeedSessionRunHook(feed_dict={factor: value}) for value in (1.0, 2.0)]
        return mox.ModelSpec(loss=spec.loss * factor, hooks=hooks)

    with pytest.raises(ValueError, match="Two hooks feed the same tensor .* different values"):
        run(gpus=1, model_fn=fed)


def test_nothing_to_feed_asks_for_nothing():
    assert mox.executor.hooks.FeedSessionRunHook(feed_dict={}).before_run(None) is None


def test_the_feeds_of_a_step():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        arguments = mox.executor.hooks.FeedSessionRunHook(feed_dict={x: 2.0}).before_run(None)
        assert (arguments.fetches, arguments.feed_dict) == (None, {x: 2.0})
