"""The schedules, step by step and at their corners."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.learning_rate_scheduler import (
    cosine_with_warmup,
    linear_cosine_decay,
    one_cycle,
    piecewise_lr,
    polynomial_decay,
)


def rates(strategy, steps, num_samples=100, global_batch_size=10) -> np.ndarray:
    with tf.Graph().as_default(), tf.Session() as session:
        rate = piecewise_lr(strategy, num_samples, global_batch_size)
        assert rate.dtype == tf.float32 and rate.shape == []
        chosen = tf.placeholder(tf.int64, [])
        set_step = tf.train.get_global_step().assign(chosen).op
        seen = []
        for step in steps:
            session.run(set_step, {chosen: step})
            seen.append(session.run(rate))
        return np.array(seen)


# Ten steps are an epoch.
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("1:0.1,2:0.01", {0: 0.1, 9: 0.1, 10: 0.01, 19: 0.01, 20: 0.01, 10**9: 0.01}),
        ("2:0.1->0.5,3:0.2", {0: 0.1, 5: 0.2, 10: 0.3, 19: 0.48, 20: 0.2, 30: 0.2}),
        ("1:0.3,3:0.1=>0.001", {9: 0.3, 10: 0.1, 20: 0.01, 30: 0.001, 500: 0.001}),
        ("4:1->0", {0: 1.0, 20: 0.5, 40: 0.0, 41: 0.0}),
        ("0.5:1,1.5:2,2:3->4", {4: 1.0, 5: 2.0, 14: 2.0, 15: 3.0, 20: 4.0}),
        (" 1 : 0.1 , 2 : 0.2 -> 0.4 ", {0: 0.1, 15: 0.3}),
        ("0.002", {0: 0.002, 10**6: 0.002}),
        (0.002, {0: 0.002, 77: 0.002}),
        ("10:1e-3", {0: 0.001, 200: 0.001}),
    ],
)
def test_rates(strategy, expected):
    np.testing.assert_allclose(rates(strategy, list(expected)), list(expected.values()), rtol=1e-6, atol=1e-12)


def test_stages_end_at_the_exact_step():
    # 1,281,167 images in batches of 1,024: epoch 30 lies between two steps; 90 epochs of 100 in batches of 3 do not.
    steps = 30 * 1281167 / 1024
    assert rates("30:1,60:2", [int(steps), int(steps) + 1], 1281167, 1024).tolist() == [1, 2]
    assert rates("90:1,95:2", [2999, 3000], 100, 3).tolist() == [1, 2]
    assert rates("0.1:1,0.3:2,1:3", [0, 1, 2, 3]).tolist() == [1, 2, 2, 3]


@pytest.mark.parametrize("use_resource", [True, False])
def test_follows_the_training(use_resource):
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=use_resource), tf.Session() as session:
        optimizer = tf.train.GradientDescentOptimizer(piecewise_lr("1:0.5,2:0.25", num_samples=4, global_batch_size=2))
        weight = tf.get_variable("w", initializer=0.0)
        step = optimizer.minimize(-weight, global_step=tf.train.get_global_step())
        session.run(tf.global_variables_initializer())
        seen = []
        for _ in range(4):
            session.run(step)
            seen.append(float(session.run(weight)))
    assert seen == [0.5, 1.0, 1.25, 1.5]


# --- schedules over all steps -----------------------------------------------------------------------------------------

STEPS = np.array([0, 1, 9, 10, 11, 19, 20, 21, 50, 79, 80, 81, 99, 100, 101, 10**9])


def curve(schedule) -> np.ndarray:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int64, [])
        rate = schedule(step)
        assert rate.dtype == tf.float32 and rate.shape == []
        return np.array([session.run(rate, {step: value}) for value in STEPS])


def numpy_curve(top, end, first, peak, last, down, up=lambda done: done):
    """Up from `first` to `peak` at step `top`, down to `last` at step `end`."""
    rates = []
    for step in STEPS.astype(np.float64):
        if step < top:
            rates.append(first + (peak - first) * up(step / top))
        else:
            passed = min((step - top) / (end - top), 1.0)
            rates.append(last + (peak - last) * down(passed))
    return np.array(rates)


def cosine(passed):
    return (1 + np.cos(np.pi * passed)) / 2


def test_linear_cosine_decay():
    expected = numpy_curve(20, 80, 0.1, 6.4, 0.1, lambda passed: (1 - passed) * cosine(passed))
    np.testing.assert_allclose(
        curve(lambda step: linear_cosine_decay(6.4, 0.1, step, 100, 0.2, 0.8)), expected, rtol=1e-6
    )
    assert expected[0] == 0.1 and expected[STEPS == 20] == 6.4 and (expected[STEPS >= 80] == 0.1).all()


@pytest.mark.parametrize("power", [1.0, 2.0, 3.5])
def test_polynomial_decay(power):
    expected = numpy_curve(10, 100, 0.001, 3.2, 0.001, lambda passed: (1 - passed) ** power)
    arguments = {} if power == 2.0 else {"power": power}
    schedule = curve(lambda step: polynomial_decay(3.2, 0.001, step, 100, 0.1, 1.0, **arguments))
    np.testing.assert_allclose(schedule, expected, rtol=1e-6)


def test_cosine_with_warmup():
    expected = numpy_curve(10, 100, 0.0, 0.5, 0.0, cosine)
    np.testing.assert_allclose(curve(lambda step: cosine_with_warmup(0.5, 0.0, step, 100)), expected, 1e-6, 1e-9)


def test_one_cycle():
    expected = numpy_curve(30, 100, 0.04, 1.0, 0.04 / 1e4, cosine, lambda done: 1 - cosine(done))
    np.testing.assert_allclose(curve(lambda step: one_cycle(1.0, step, 100)), expected, rtol=2e-6)


@pytest.mark.parametrize("schedule", [linear_cosine_decay, polynomial_decay, cosine_with_warmup])
def test_without_warmup_the_first_rate_is_the_highest(schedule):
    rates = curve(lambda step: schedule(2.0, 0.5, step, 100, 0.0))
    assert rates[0] == 2.0 and rates[-1] == 0.5 and (np.diff(rates) <= 0).all()


def test_the_step_of_the_graph():
    with tf.Graph().as_default(), tf.Session() as session:
        rate = cosine_with_warmup(1.0, 0.0, None, 100)
        count = tf.assign_add(tf.train.get_global_step(), 5).op
        session.run(tf.global_variables_initializer())
        session.run(count)
        assert session.run(rate) == 0.5


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (lambda: linear_cosine_decay(0.0, 0.0, 0, 100), r"linear_cosine_decay\(max_lr=0.0\): expected a positive"),
        (lambda: linear_cosine_decay(1.0, 2.0, 0, 100), r"\(min_lr=2.0\): expected a number from 0 to max_lr=1.0"),
        (lambda: polynomial_decay(1.0, 0.0, 0, -1), r"polynomial_decay\(max_step=-1\)"),
        (lambda: polynomial_decay(1.0, 0.0, 0, 100, 1.0), r"\(warmup_ratio=1.0\): expected a number from 0 to below 1"),
        (lambda: polynomial_decay(1.0, 0.0, 0, 100, 0.3, 0.3), r"\(decay_end_ratio=0.3\).*above warmup_ratio=0.3"),
        (lambda: polynomial_decay(1.0, 0.0, 0, 100, power=0), r"\(power=0\)"),
        (lambda: cosine_with_warmup(1.0, None, 0, 100), r"cosine_with_warmup\(min_lr=None\)"),
        (lambda: one_cycle(1.0, 0, 100, start_divisor=0.0), r"one_cycle\(start_divisor=0.0\)"),
    ],
)
def test_bad_arguments_of_schedules(schedule, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        schedule()
