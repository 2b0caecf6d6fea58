"""Inputs made of queues."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds
from received_inputs import DATA, assert_equal, numbers_of, plain, received, was_lifted


@pytest.fixture(autouse=True)
def no_debug(caplog):
    caplog.set_level("DEBUG", logger="tensorflow")


def slices(mode):
    x, label = tf.train.slice_input_producer(
        [tf.constant(DATA), tf.constant(np.arange(7))], num_epochs=2, shuffle=False
    )
    return x * 2, label


def queue_batches(mode):
    x, label = slices(mode)
    return tf.train.batch([x, label], batch_size=4, allow_smaller_final_batch=True)


def strings_in_a_queue(mode):
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=1, shuffle=False)
    return tf.strings.join([queue.dequeue(), "!"])


@pytest.mark.parametrize("input_fn", [slices, queue_batches, strings_in_a_queue])
def test_queues_equal_a_plain_session(input_fn, caplog):
    expected = plain(input_fn)
    assert len(expected) in (14, 4, 3)
    assert_equal(received(input_fn), expected)
    assert not was_lifted(caplog)


def test_queue_of_samples_is_batched():
    expected = np.concatenate([DATA, DATA]) * 2
    seen = received(slices, batch_size=4)
    assert [len(label) for _, label in seen] == [4, 4, 4, 2]
    np.testing.assert_array_equal(np.concatenate([x for x, _ in seen]), expected)


def test_shuffled_queue_without_end():
    def input_fn(mode):
        x, label = tf.train.slice_input_producer([tf.constant(DATA), tf.constant(np.arange(7))], seed=4)
        return tf.train.shuffle_batch([x, label], 2, capacity=10, min_after_dequeue=4, seed=5)

    seen = received(input_fn, steps=6)
    for x, label in seen:
        np.testing.assert_array_equal(x, DATA[label])
    assert len(seen) == 6


def test_files_read_through_queues(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f"{name}{line}\n" for line in range(3)))

    def input_fn(mode):
        names = tf.train.string_input_producer([str(tmp_path / "a"), str(tmp_path / "b")], num_epochs=1, shuffle=False)
        _, line = tf.TextLineReader().read(names)
        return line

    assert numbers_of(received(input_fn)) == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


def broken(mode, number):
    def fail(value):
        if value == 3:
            raise ZeroDivisionError("sample 3 is broken")
        return value

    return tf.py_func(fail, [number], tf.int64)


def broken_queue(mode):
    number = tf.train.input_producer(tf.range(8, dtype=tf.int64), num_epochs=1, shuffle=False).dequeue()
    value = broken(mode, number)
    value.set_shape([])
    return tf.train.batch([value], batch_size=1)


def broken_map(mode):
    return broken(mode, tf.data.Dataset.range(8).make_one_shot_iterator().get_next())


@pytest.mark.parametrize("input_fn", [broken_queue, broken_map])
def test_an_error_in_the_input_is_not_the_end_of_the_data(input_fn):
    with pytest.raises(tf.errors.OpError, match="sample 3 is broken"):
        received(input_fn)


def test_iterator_mixed_with_a_queue():
    def mixed(mode):
        element = tf.data.Dataset.range(9).make_one_shot_iterator().get_next()
        queued = tf.train.input_producer(tf.constant([1, 2], tf.int64)).dequeue()
        return element + queued

    text = error_of(ValueError, input_fn=mixed, batch_size=None)
    assert holds(text, "input_fn", "queue", "tf.data")
