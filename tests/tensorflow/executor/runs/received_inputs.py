"""Helpers for tests of inputs: the batches that `model_fn` gets, and those of a plain session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox

Batches = list[list[Any]]


def received(input_fn, steps: int = 100, batch_size: int | None = None, hook=None, **arguments: Any) -> Batches:
    """Every batch that model_fn gets, leaf by leaf."""
    seen: Batches = []

    def record(*values):
        seen.append([np.array(value) for value in values])
        return np.float32(0)

    def model_fn(inputs, mode, **kwargs):
        leaves = tf.nest.flatten(inputs, expand_composites=True)
        recorded = tf.py_func(record, leaves, tf.float32)
        recorded.set_shape([])
        w = tf.get_variable("w", initializer=0.0)
        return mox.ModelSpec(loss=w * (1 + recorded), log_info={"zero": recorded}, hooks=[hook] if hook else None)

    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.0),
        run_mode="TRAIN",
        batch_size=batch_size,
        max_number_of_steps=steps,
        **arguments,
    )
    return seen


def plain(input_fn, steps: int = 100) -> Batches:
    """The batches of a plain session, one `session.run` per element, to the end of the data."""
    seen: Batches = []
    with tf.Graph().as_default(), tf.Session() as session:
        returned = input_fn(mox.ModeKeys.TRAIN)
        leaves = tf.nest.flatten(returned, expand_composites=True)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.tables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while len(seen) < steps:
                seen.append([np.array(value) for value in session.run(leaves)])
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
    return seen


def assert_equal(actual: Batches, expected: Batches) -> None:
    assert len(actual) == len(expected)
    for left, right in zip(actual, expected, strict=True):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            np.testing.assert_array_equal(one, other)


def numbers_of(batches: Batches) -> list[Any]:
    return [values[0].tolist() for values in batches]


def was_lifted(caplog) -> bool:
    return not any("The input stays as input_fn built it" in record.getMessage() for record in caplog.records)


DATA = np.random.RandomState(1).rand(7, 4).astype(np.float32)


def input_config(count=10, batch_size=2):
    """The part of a `RunConfig` that inputs are built from."""

    def input_fn(mode):
        return tf.data.make_one_shot_iterator(tf.data.Dataset.range(count)).get_next()

    return SimpleNamespace(input_fn=input_fn, batch_size=batch_size, batches=batch_size is not None)


def batches_of_inputs(inputs, most=20, feed=None):
    found = []
    with tf.Session() as session:
        session.run(inputs.initializers, feed)
        while len(found) < most:
            try:
                found.append([batch[0].tolist() for batch in session.run(inputs.towers)])
            except tf.errors.OutOfRangeError:
                break
    return found
