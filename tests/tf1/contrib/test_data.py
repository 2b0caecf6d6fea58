"""tf.contrib.data on today's tf.data, with v1 datasets in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moxing.tf1 import environment

environment.prepare()

import tensorflow as tf  # noqa: E402

from moxing.tf1.contrib import data  # noqa: E402

v1 = tf.compat.v1


def elements(transformation: Any, source: Any = None, limit: int = 100) -> list[Any]:
    """What a v1 dataset yields after `apply`, through its own one-shot iterator as in 2018."""
    with tf.Graph().as_default():
        dataset = v1.data.Dataset.range(10) if source is None else source()
        following = dataset.apply(transformation).make_one_shot_iterator().get_next()
        found = []
        with v1.Session() as session:
            while len(found) < limit:
                try:
                    found.append(session.run(following))
                except tf.errors.OutOfRangeError:
                    break
        return found


def listed(values: list[Any]) -> list[Any]:
    return [np.asarray(value).tolist() for value in values]


def test_batch_and_drop_remainder() -> None:
    assert listed(elements(data.batch_and_drop_remainder(4))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with tf.Graph().as_default():
        dataset = v1.data.Dataset.range(10).apply(data.batch_and_drop_remainder(4))
        assert v1.data.get_output_shapes(dataset).as_list() == [4]


def test_padded_batch_and_drop_remainder() -> None:
    def ragged() -> Any:
        return v1.data.Dataset.range(5).map(lambda n: tf.fill([n], n))

    assert listed(elements(data.padded_batch_and_drop_remainder(2, [None]), ragged)) == [
        [[0], [1]],
        [[2, 2, 0], [3, 3, 3]],
    ]


@pytest.mark.parametrize("parallel", [{}, {"num_parallel_batches": 2}, {"num_parallel_calls": 3}])
def test_map_and_batch(parallel: dict[str, int]) -> None:
    assert listed(elements(data.map_and_batch(lambda n: n * n, 4, **parallel))) == [
        [0, 1, 4, 9],
        [16, 25, 36, 49],
        [64, 81],
    ]
    assert len(elements(data.map_and_batch(lambda n: n, 4, drop_remainder=True, **parallel))) == 2


def test_map_and_batch_takes_one_kind_of_parallelism() -> None:
    with pytest.raises(ValueError, match="num_parallel_batches=1 and num_parallel_calls=2: give one"):
        data.map_and_batch(lambda n: n, 4, num_parallel_batches=1, num_parallel_calls=2)


@pytest.mark.parametrize("sloppy", [False, True])
def test_parallel_interleave(sloppy: bool) -> None:
    def repeated(n: Any) -> Any:
        return v1.data.Dataset.from_tensors(n).repeat(4)

    found = listed(elements(data.parallel_interleave(repeated, cycle_length=2, block_length=2, sloppy=sloppy)))
    assert sorted(found) == sorted(4 * list(range(10)))
    assert found[:8] == [0, 0, 1, 1, 0, 0, 1, 1]


def test_shuffle_and_repeat() -> None:
    found = listed(elements(data.shuffle_and_repeat(10, count=2, seed=1)))
    assert sorted(found[:10]) == sorted(found[10:]) == list(range(10))
    assert found[:10] != found[10:]
    assert len(elements(data.shuffle_and_repeat(10), limit=35)) == 35


def test_unbatch_and_enumerate() -> None:
    assert listed(elements(data.unbatch(), lambda: v1.data.Dataset.range(4).batch(3))) == [0, 1, 2, 3]
    assert listed(elements(data.enumerate_dataset(5), lambda: v1.data.Dataset.range(2))) == [[5, 0], [6, 1]]


def test_ignore_errors() -> None:
    def failing() -> Any:
        return v1.data.Dataset.range(4).map(lambda n: tf.debugging.check_numerics(1.0 / tf.cast(n - 2, tf.float32), ""))

    assert listed(elements(data.ignore_errors(), failing)) == [-0.5, -1.0, 1.0]


def test_group_by_window() -> None:
    transformation = data.group_by_window(lambda n: n % 2, lambda key, window: window.batch(5), 5)
    assert listed(elements(transformation)) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    with pytest.raises(ValueError, match="either window_size or window_size_func"):
        data.group_by_window(len, len)


@pytest.mark.parametrize("argument", ["stride", "window_shift"])
def test_sliding_window_batch(argument: str) -> None:
    found = elements(data.sliding_window_batch(4, **{argument: 3}))
    assert listed(found) == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    with pytest.raises(ValueError, match="mean the same"):
        data.sliding_window_batch(4, stride=1, window_shift=1)


def test_sliding_window_batch_keeps_the_structure() -> None:
    def pairs() -> Any:
        return v1.data.Dataset.range(3).map(lambda n: (n, {"square": n * n}))

    numbers, rest = elements(data.sliding_window_batch(2), pairs)[1]
    assert numbers.tolist() == [1, 2]
    assert rest["square"].tolist() == [1, 4]


def test_counter_and_the_classes_of_the_first_versions() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        following = v1.data.make_one_shot_iterator(data.Counter(3, 2)).get_next()
        assert [session.run(following) for _ in range(2)] == [3, 5]
    assert data.Dataset is v1.data.Dataset
    assert data.TFRecordDataset is v1.data.TFRecordDataset
