"""File names for the queues of TensorFlow 1."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.user import facade


def test_names_from_a_variable_and_a_list(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    producer = facade.module("tensorflow.train").string_input_producer
    assert producer.__doc__ == tf.train.string_input_producer.__doc__
    with tf.Graph().as_default():
        found = producer(tf.train.match_filenames_once(f"{tmp_path}/*"), num_epochs=1, shuffle=False).dequeue()
        given = producer(["x", "y"], shuffle=False).dequeue()
        with tf.train.MonitoredSession() as session:
            assert [session.run(found) for _ in range(2)] == [str(tmp_path / name).encode() for name in ("a", "b")]
            assert [session.run(given) for _ in range(3)] == [b"x", b"y", b"x"]


def test_an_empty_list_is_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="null input"):
        facade.module("tensorflow.train").string_input_producer([])


def test_what_a_script_changes_is_changed_for_libraries():
    train = facade.module("tensorflow.train")
    original = tf.train.SessionRunHook
    try:
        train.SessionRunHook = object
        assert tf.train.SessionRunHook is object
    finally:
        train.SessionRunHook = original
    assert train is facade.module("tensorflow").train is facade.module("tensorflow.compat.v1").train
