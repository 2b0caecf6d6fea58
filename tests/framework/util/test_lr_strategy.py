"""Learning rates in stages: malformed ones, and the same numbers from NumPy and from TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.framework.util.lr_strategy import parse_stages, rate_at
from moxing.tensorflow.optimizer.learning_rate_scheduler import (
    piecewise_lr,
)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("", r"wrong piece ''.*EPOCH:RATE"),
        ("fast", "wrong piece 'fast'"),
        ("0.1->0.2", "wrong piece '0.1->0.2'"),
        ("1:0.1,0.01", "wrong piece '0.01'"),
        ("1:0.1,", "wrong piece ''"),
        ("1:0.1,x:0.2", "wrong piece 'x:0.2'"),
        ("1:0.1:0.2", "wrong piece '1:0.1:0.2'"),
        ("1:0.1->0.2->0.3", "wrong piece '1:0.1->0.2->0.3'"),
        ("1:0.1,1:0.2", "wrong piece '1:0.2': epochs must rise, and this stage would begin at epoch 1"),
        ("0:0.1", "wrong piece '0:0.1': epochs must rise"),
        ("1:-0.1", "wrong piece '1:-0.1': numbers must be finite and not negative"),
        ("1:nan", "wrong piece '1:nan'"),
        ("inf:0.1", "wrong piece 'inf:0.1'"),
        ("1:0.1=>0", "wrong piece '1:0.1=>0': an exponential stage needs rates above 0"),
    ],
)
def test_malformed_strategies(strategy, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        piecewise_lr(strategy, 100, 10)


@pytest.mark.parametrize("value", [0, -1, None, "100", float("nan")])
def test_bad_counts(value):
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="num_samples=.*expected a positive number"):
            piecewise_lr("1:0.1", value, 10)
        with pytest.raises(ValueError, match="global_batch_size="):
            piecewise_lr("1:0.1", 100, value)


@pytest.mark.parametrize("strategy", ["1:0.1->0.5,3:0.5=>0.01", "2:0.1,4:0.01", "0.3"])
def test_the_numbers_are_those_of_training(strategy):
    steps = np.arange(0.0, 60.0)
    drawn = rate_at(parse_stages(strategy), steps, 100, 10, np)
    with tf.Graph().as_default(), tf.Session() as session:
        rate = piecewise_lr(strategy, 100, 10)
        session.run(tf.global_variables_initializer())
        count = tf.assign_add(tf.train.get_global_step(), 1).op
        trained = []
        for _ in steps:
            trained.append(session.run(rate))
            session.run(count)
    np.testing.assert_array_equal(drawn.astype(np.float32), np.array(trained))
