"""The counters in the graph."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.build.ledger import Ledger, LedgerValues


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def batches(count: int, size: int) -> tf.Tensor:
    """The numbers below `count` in batches of `size`."""
    return tf.data.make_one_shot_iterator(tf.data.Dataset.range(count).batch(size)).get_next()


def values(session: tf.Session, ledger: Ledger) -> LedgerValues:
    return ledger.decode(session.run(ledger.read()))


def test_samples_steps_and_the_last_log_info(session):
    batch = batches(7, 3)
    info = {"first": batch[0], "mean": tf.reduce_mean(tf.cast(batch, tf.float32))}
    ledger = Ledger(info, tf.size(batch), [batch.op])
    session.run(ledger.initializers)
    assert values(session, ledger) == LedgerValues(samples=0, steps=0, last={}, means={})
    session.run(ledger.update)
    assert values(session, ledger) == LedgerValues(3, 1, {"first": 0.0, "mean": 1.0}, {})
    session.run(ledger.update)
    session.run(ledger.update)
    assert values(session, ledger) == LedgerValues(7, 3, {"first": 6.0, "mean": 6.0}, {})


def test_nothing_is_counted_at_the_end_of_the_data(session):
    batch = batches(3, 3)
    ledger = Ledger({"first": batch[0]}, tf.size(batch), [batch.op])
    session.run(ledger.initializers)
    session.run(ledger.update)
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(ledger.update)
    assert values(session, ledger) == LedgerValues(3, 1, {"first": 0.0}, {})


def test_means_are_weighted_by_sample(session):
    batch = batches(7, 3)
    info = {"mean": tf.reduce_mean(tf.cast(batch, tf.float32))}
    ledger = Ledger(info, tf.size(batch), [batch.op], means=info)
    session.run(ledger.initializers)
    for _ in range(3):
        session.run(ledger.update)
    # Batches 0 1 2, 3 4 5, 6.
    assert values(session, ledger) == LedgerValues(7, 3, {"mean": 6.0}, {"mean": pytest.approx(3.0)})


def test_means_of_other_tensors_than_those_that_are_logged(session):
    """With several towers, the first one is logged and all are averaged."""
    ledger = Ledger({"x": tf.constant(1.0)}, tf.constant(4), [], means={"x": tf.constant(2.5)})
    session.run(ledger.initializers)
    session.run(ledger.update)
    assert values(session, ledger) == LedgerValues(4, 1, {"x": 1.0}, {"x": 2.5})


def test_without_log_info_only_samples_and_steps(session):
    ledger = Ledger({}, tf.constant(4), [], means={})
    session.run(ledger.initializers)
    session.run(ledger.update)
    assert set(ledger.read()) == {"counts"}
    assert values(session, ledger) == LedgerValues(4, 1, {}, {})


def test_counters_are_neither_trained_nor_saved(session):
    Ledger({"x": tf.constant(1.0)}, tf.constant(4), [])
    assert tf.global_variables() == tf.trainable_variables() == []
    assert sorted(variable.op.name for variable in tf.local_variables()) == [
        "moxing/ledger/counts",
        "moxing/ledger/last",
    ]


def test_large_counts_are_exact(session):
    """Float64 counts exactly to 2**53."""
    ledger = Ledger({}, tf.constant(1), [])
    assert ledger.decode({"counts": np.array([2.0**40 + 1, 2.0**40 + 1])}).samples == 2**40 + 1
