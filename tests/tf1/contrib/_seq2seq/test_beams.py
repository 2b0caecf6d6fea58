"""Tensors with beams."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from helpers.session_runs import run
from moxing.tf1 import contrib

v1 = tf.compat.v1


def test_tiles_are_neighbours_in_structures_too() -> None:
    rows = np.arange(6).reshape(2, 3)
    with tf.Graph().as_default():
        state = v1.nn.rnn_cell.LSTMStateTuple(tf.constant(rows), v1.placeholder_with_default(rows, [None, 3]))
        tiled = contrib.seq2seq.tile_batch(state, multiplier=2)
        assert [one.shape.as_list() for one in tiled] == [[4, 3], [None, 3]]
        (tiled,) = run(tiled)
        with pytest.raises(ValueError, match=r"t must be tensors \[batch, ...\], got the shape \(\)"):
            contrib.seq2seq.tile_batch(tf.constant(1), 2)
    for one in tiled:
        np.testing.assert_array_equal(one, rows[[0, 0, 1, 1]])


def test_trees_are_followed_back() -> None:
    random = np.random.RandomState(3)
    ids, parents = random.randint(1, 9, (5, 2, 3)), random.randint(0, 3, (5, 2, 3))
    ids[1, 0, :] = 0  # the end, for all beams of the first row
    lengths = [5, 3]
    expected = np.zeros_like(ids)
    for row, length in enumerate(lengths):
        for beam in range(3):
            parent = beam
            for step in reversed(range(length)):
                expected[step, row, beam] = ids[step, row, parent]
                parent = parents[step, row, parent]
    for row in range(2):
        for beam in range(3):
            ends = np.flatnonzero(expected[:, row, beam] == 0)
            expected[ends[0] if ends.size else 5 :, row, beam] = 0
    values = random.randn(5, 6, 4)
    with tf.Graph().as_default():
        found, sorted_values = run(
            contrib.seq2seq.gather_tree(ids, parents, lengths, 0),
            contrib.seq2seq.gather_tree_from_array(values, parents, [[5, 5, 5], [3, 3, 2]]),
        )
    np.testing.assert_array_equal(found, expected)
    split = values.reshape(5, 2, 3, 4)
    assert sorted_values.shape == (5, 2, 3, 4)
    np.testing.assert_array_equal(sorted_values[4], split[4] * [[[1]], [[1]]])
    np.testing.assert_array_equal(sorted_values[3, 0], split[3, 0, parents[4, 0]])
    np.testing.assert_array_equal(sorted_values[2, 1, 2], split[2, 1, 2])
