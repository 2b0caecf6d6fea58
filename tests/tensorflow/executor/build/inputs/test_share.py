"""How towers and workers share the data."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.build.inputs.share import EVERYTHING, Share, with_padding_batches


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_the_parts_of_all_workers_are_the_whole(workers):
    for count in range(20):
        assert sum(Share(workers=workers, index=index).part_of(count) for index in range(workers)) == count
    assert EVERYTHING.part_of(8) == 8


def elements(dataset, most=6):
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        while len(found) < most:
            try:
                found.append(tuple(int(part) for part in session.run(element)))
            except tf.errors.OutOfRangeError:
                break
    return found


def test_endless_padding_of_a_worker_without_data():
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(2)
        assert elements(with_padding_batches(data.skip(2), data, None)) == [(0, 0)] * 6


def test_no_padding_after_full_steps():
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(2)
        assert elements(with_padding_batches(data, data, 0)) == [(0, 1), (1, 1)]
