"""Seeds of datasets that the script did not seed."""

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph.data_seeds import data_seeds, dataset_seed


def order(seed, graph_seed=None, own_seed=None, datasets=1):
    """The order of a shuffled dataset, the last of `datasets` in its graph."""
    with tf.Graph().as_default(), data_seeds(seed), tf.Session() as session:
        if graph_seed is not None:
            tf.set_random_seed(graph_seed)
        for _ in range(datasets):
            shuffled = tf.data.Dataset.range(50).shuffle(50, seed=own_seed).batch(50)
        return session.run(tf.data.make_one_shot_iterator(shuffled).get_next()).tolist()


def test_the_order_follows_from_the_seed_of_the_run():
    assert order(1) == order(1) != order(2)
    assert order(1) != order(1, datasets=2)


def test_seeds_of_the_script_stay():
    assert order(1, graph_seed=5) == order(2, graph_seed=5)
    assert order(1, graph_seed=5, own_seed=7) == order(2, graph_seed=5, own_seed=7)


@pytest.mark.parametrize(("graph_seed", "expected"), [(None, 9), (4, 4)])
def test_the_seeds_of_our_datasets(graph_seed, expected):
    with tf.Graph().as_default(), data_seeds(9):
        if graph_seed is not None:
            tf.set_random_seed(graph_seed)
        assert [dataset_seed(), dataset_seed()] == [(expected, 1), (expected, 2)]


def test_outside_a_run_the_seed_is_random():
    def draw():
        with tf.Graph().as_default():
            return dataset_seed()[0]

    assert len({draw() for _ in range(5)}) > 1
