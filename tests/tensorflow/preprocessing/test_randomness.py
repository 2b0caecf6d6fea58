"""Where the seed of a sample comes from, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from augmenting import chi_square, limit, noise

from moxing.tensorflow.preprocessing import get_data_augmentation_fn, randomness


def register(*ops: tf.Operation, seed: tf.Tensor) -> None:
    tf.add_to_collection(randomness.SAMPLE_SEEDS, (frozenset(op.name for op in ops), seed))


def random_ops(graph: tf.Graph) -> list[str]:
    return [op.type for op in graph.get_operations() if op.type.startswith("RandomUniform")]


def test_seed_of_the_sample_behind_the_image():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        first, second = tf.placeholder(tf.uint8, [9, 9, 3]), tf.placeholder(tf.uint8, [9, 9, 3])
        seeds = [tf.placeholder(tf.int64, [2]) for _ in range(2)]
        register(first.op, seed=seeds[0])
        register(second.op, seed=seeds[1])
        found = [randomness.sample_seed(tensor) for tensor in (first, second + 1, tf.transpose(second))]
        assert random_ops(graph) == []
        a, b, c = session.run(found, {seeds[0]: [1, 2], seeds[1]: [1, 2]})
        again = session.run(found, {seeds[0]: [1, 2], seeds[1]: [3, 4]})
    assert len({tuple(a), tuple(b), tuple(c)}) == 3  # one sample's seed, and yet another decision at every call
    assert tuple(again[0]) == tuple(a) and tuple(again[1]) != tuple(b)


def test_two_augmentations_of_one_sample_differ():
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.uint8, [40, 60, 3])
        register(image.op, seed=tf.constant([5, 6], tf.int64))
        fn = get_data_augmentation_fn("cifarnet", "TRAIN")
        both = [fn(image), fn(image)]
        feed = {image: noise(40, 60)}
        first, second = session.run(both, feed)
        np.testing.assert_array_equal(first, session.run(both[0], feed))
    assert np.abs(first - second).max() > 0.1


@pytest.mark.parametrize("encoded", [True, False])
def test_pictures_find_their_sample(encoded):
    from moxing.tensorflow.preprocessing.pictures import DecodedPicture, EncodedPicture

    with tf.Graph().as_default() as graph:
        source = tf.placeholder(tf.string, []) if encoded else tf.placeholder(tf.uint8, [40, 40, 3])
        register(source.op, seed=tf.constant([5, 6]))
        picture = EncodedPicture(source) if encoded else DecodedPicture(source)
        get_data_augmentation_fn("cifarnet", "TRAIN").apply(picture)
        assert random_ops(graph) == []


def test_drawn_where_no_sample_is_known():
    def drawn() -> list[tuple[int, ...]]:
        with tf.Graph().as_default() as graph, tf.Session() as session:
            tf.set_random_seed(3)
            known, other = tf.placeholder(tf.uint8, [9, 9, 3]), tf.placeholder(tf.uint8, [9, 9, 3])
            register(known.op, seed=tf.constant([5, 6]))
            seed = randomness.sample_seed(other)
            assert random_ops(graph) == ["RandomUniformInt"]
            assert seed.shape == [2]
            return [tuple(session.run(seed)) for _ in range(5)]

    first = drawn()
    assert len(set(first)) == 5
    assert drawn() == first  # under the seed of the graph


def test_names_of_the_outer_graph_do_not_count_inside_a_function():
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.data.Dataset.range(6)
        # The argument of the mapped function has this very name in the function's own graph.
        register(tf.placeholder(tf.int64, [], name="args_0").op, seed=tf.constant([5, 6]))
        seeds = numbers.map(randomness.sample_seed).batch(6)
        values = session.run(tf.data.make_one_shot_iterator(seeds).get_next())
    assert len({tuple(value) for value in values}) == 6


def test_evaluation_draws_nothing():
    with tf.Graph().as_default() as graph:
        for name in ("vgg_16", "inception_v3", "cifarnet", "lenet", "pvanet"):
            get_data_augmentation_fn(name, "EVAL")(tf.zeros([300, 300, 3]))
        assert [op.type for op in graph.get_operations() if "Random" in op.type] == []


def test_training_is_stateless_but_for_one_draw():
    with tf.Graph().as_default() as graph:
        for name in ("vgg_16", "inception_v3", "cifarnet", "pvanet"):
            get_data_augmentation_fn(name, "TRAIN")(tf.zeros([300, 300, 3]))
        assert random_ops(graph) == ["RandomUniformInt"] * 4


def test_decisions():
    with tf.Graph().as_default(), tf.Session() as session:

        def decide(index):
            one, two = randomness.split(tf.stack([index, 1]), 2)
            return randomness.integer(one, -2, 7), randomness.coin(two)

        dataset = tf.data.Dataset.range(2000).map(decide).batch(2000)
        numbers, heads = session.run(tf.data.make_one_shot_iterator(dataset).get_next())
    assert chi_square(numbers, -2, 7) < limit(10)
    assert abs(heads.mean() - 0.5) < 0.03
    assert abs(np.corrcoef(numbers, heads)[0, 1]) < 0.07


@pytest.mark.parametrize("seed", [3, (1, 2, 3), (0.5, 1.0)])
def test_bad_seed(seed):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"seed=.*expected two integers \(int32 or int64"):
        get_data_augmentation_fn("lenet", "EVAL")(tf.zeros([28, 28, 1]), seed=seed)
