"""Batches and epochs of one split of MNIST."""

from __future__ import annotations

import numpy as np
import pytest

from moxing.tf1.examples.tutorials.mnist.dataset import DataSet


def numbered(number: int, **kwargs: object) -> DataSet:
    images = np.arange(number, dtype=np.uint8).reshape(number, 1, 1, 1)
    return DataSet(images, np.arange(number), dtype=np.uint8, **kwargs)


def test_an_epoch_gives_every_example_once_and_images_stay_with_their_labels() -> None:
    data = numbered(50)
    batches = [data.next_batch(10) for _ in range(5)]
    assert data.epochs_completed == 0
    labels = np.concatenate([labels for _, labels in batches])
    np.testing.assert_array_equal(np.concatenate([images for images, _ in batches])[:, 0], labels)
    assert sorted(labels) == list(range(50))
    assert list(labels) != list(range(50))


def test_the_rest_of_an_epoch_is_joined_with_the_reshuffled_next() -> None:
    data = numbered(10, seed=3)
    first = np.concatenate([data.next_batch(4)[1] for _ in range(2)])
    over_the_end = data.next_batch(4)[1]
    assert data.epochs_completed == 1
    assert sorted([*first, *over_the_end[:2]]) == list(range(10))
    rest = np.concatenate([data.next_batch(4)[1] for _ in range(2)])
    assert sorted([*over_the_end[2:], *rest]) == list(range(10))


def test_without_shuffle_the_order_is_that_of_the_file() -> None:
    data = numbered(5)
    assert [data.next_batch(3, shuffle=False)[1].tolist() for _ in range(3)] == [[0, 1, 2], [3, 4, 0], [1, 2, 3]]
    assert data.epochs_completed == 1


def test_a_batch_larger_than_the_data_spans_epochs() -> None:
    data = numbered(4)
    _, labels = data.next_batch(10)
    assert len(labels) == 10
    assert data.epochs_completed == 2
    assert sorted(labels[:4]) == sorted(labels[4:8]) == [0, 1, 2, 3]


def test_a_seed_gives_the_permutations_of_the_tutorial() -> None:
    data = numbered(6, seed=7)
    reference = np.random.RandomState(7)
    expected = np.arange(6)
    for _ in range(3):
        permutation = np.arange(6)
        reference.shuffle(permutation)
        expected = expected[permutation]
        assert data.next_batch(6)[1].tolist() == expected.tolist()


def test_numpy_random_seed_decides_where_no_seed_is_given() -> None:
    orders = []
    for _ in range(2):
        data = numbered(20)
        np.random.seed(5)
        orders.append(data.next_batch(20)[1].tolist())
    assert orders[0] == orders[1]


def test_writing_to_a_batch_leaves_the_data_alone() -> None:
    data = numbered(4)
    images, _ = data.next_batch(4, shuffle=False)
    images[:] = 99
    assert data.images.max() == 3


@pytest.mark.parametrize("size", [0, -3])
def test_batch_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"batch_size must be at least 1, got {size}"):
        numbered(4).next_batch(size)


def test_the_graph_level_seed_of_tensorflow_decides_too() -> None:
    from moxing.tf1 import environment

    environment.prepare()
    import tensorflow as tf

    with tf.Graph().as_default():
        tf.compat.v1.set_random_seed(11)
        seeded = numbered(20)
    assert seeded.next_batch(20)[1].tolist() == numbered(20, seed=11).next_batch(20)[1].tolist()


def test_a_fake_batch_of_real_data() -> None:
    assert numbered(4, one_hot=True).next_batch(1, fake_data=True)[1] == [[1] + [0] * 9]
