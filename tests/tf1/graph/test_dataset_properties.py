"""What a data set tells without running: whether it ends, and whether somebody took a part of it."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph.dataset_properties import is_endless, is_sharded

SHARDED = {
    "itself": lambda d: d.shard(2, 1),
    "then mapped": lambda d: d.shard(2, 0).map(lambda x: x + 1).batch(2).prefetch(1).repeat(),
    "then shuffled": lambda d: d.shard(3, 1).shuffle(8).repeat(2),
    "one part of a zip": lambda d: tf.data.Dataset.zip((d, d.shard(2, 0))),
    "one part of a chain": lambda d: d.concatenate(d.shard(2, 0)),
    "behind filter and take": lambda d: d.shard(2, 0).filter(lambda x: x > 0).take(2),
    "number of workers 1": lambda d: d.shard(1, 0),
    "by tensors": lambda d: d.shard(tf.constant(2, tf.int64), tf.constant(0, tf.int64)),
}
WHOLE = {
    "itself": lambda d: d,
    "with everything": lambda d: d.shuffle(4).map(lambda x: x + 1, num_parallel_calls=2).batch(2).cache().repeat(),
    "zip": lambda d: tf.data.Dataset.zip((d, d)),
    "skip and take": lambda d: d.skip(1).take(3),
    "interleave": lambda d: d.interleave(lambda x: tf.data.Dataset.range(x), cycle_length=2),
    "from a generator": lambda d: tf.data.Dataset.from_generator(lambda: iter([1]), tf.int64),
}


@pytest.mark.parametrize("build", SHARDED.values(), ids=SHARDED.keys())
def test_a_part_is_seen_wherever_it_was_taken(build):
    with tf.Graph().as_default():
        assert is_sharded(build(tf.data.Dataset.range(8)))


@pytest.mark.parametrize("build", WHOLE.values(), ids=WHOLE.keys())
def test_the_whole_is_not_taken_for_a_part(build):
    with tf.Graph().as_default():
        assert not is_sharded(build(tf.data.Dataset.range(8)))


def test_both_kinds_of_data_set():
    with tf.Graph().as_default():
        assert is_sharded(tf.compat.v2.data.Dataset.range(8).shard(2, 0))
        assert is_endless(tf.compat.v2.data.Dataset.range(8).repeat().shuffle(2))


@pytest.mark.parametrize(
    ("build", "endless"),
    [
        (lambda d: d.repeat(), True),
        (lambda d: d.repeat(-1).batch(3).prefetch(1), True),
        (lambda d: d.repeat(5), False),
        (lambda d: d.repeat().take(5), False),
        (lambda d: tf.data.Dataset.zip((d.repeat(), d.repeat())), True),
        (lambda d: tf.data.Dataset.zip((d.repeat(), d)), False),
        (lambda d: d.repeat().filter(lambda x: x > 7), False),  # perhaps: it is not certain
    ],
)
def test_endless(build, endless):
    with tf.Graph().as_default():
        assert is_endless(build(tf.data.Dataset.range(8))) is endless
