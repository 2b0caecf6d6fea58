"""Streams: several elements of one iterator per sample."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from received_inputs import DATA, numbers_of, received


def two_calls(iterator_of):
    def input_fn(mode):
        iterator = iterator_of(tf.data.Dataset.range(7))
        first, second = iterator.get_next(), iterator.get_next()
        return first, second * 10

    return input_fn


@pytest.mark.parametrize(
    "make", [lambda dataset: dataset.make_one_shot_iterator(), lambda dataset: dataset.make_initializable_iterator()]
)
def test_two_calls_of_get_next_are_consecutive_elements(make):
    values = [[int(first), int(second)] for first, second in received(two_calls(make))]
    assert values == [[0, 10], [2, 30], [4, 50]]


def test_two_calls_of_get_next_on_pairs():
    def input_fn(mode):
        iterator = tf.data.Dataset.from_tensor_slices((DATA[:6], np.arange(6))).make_one_shot_iterator()
        (x, label), (other, other_label) = iterator.get_next(), iterator.get_next()
        return x + other, label, other_label

    seen = received(input_fn)
    assert [[int(label), int(other)] for _, label, other in seen] == [[0, 1], [2, 3], [4, 5]]
    np.testing.assert_array_equal([x for x, _, _ in seen], DATA[:6:2] + DATA[1:6:2])


def test_three_calls_of_get_next_batched():
    def input_fn(mode):
        iterator = tf.data.Dataset.range(9).make_one_shot_iterator()
        return tf.stack([iterator.get_next() for _ in range(3)])

    assert numbers_of(received(input_fn, batch_size=2)) == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8]]]
