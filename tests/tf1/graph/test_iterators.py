"""Iterators of an `input_fn` that are recorded instead of made."""

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph.iterators import RecordedIterator, recorded_iterators
from moxing.tf1.graph.run_graph import run_graph


@pytest.fixture
def graph():
    with run_graph(tf.Graph()) as graph:
        yield graph


@pytest.mark.parametrize(
    "make",
    [
        lambda dataset: dataset.make_one_shot_iterator(),
        lambda dataset: dataset.make_initializable_iterator(),
        tf.data.make_one_shot_iterator,
        tf.data.make_initializable_iterator,
    ],
)
def test_all_ways_to_make_one_are_recorded(graph, make):
    dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0]})
    with recorded_iterators() as recorded:
        iterator = make(dataset)
        element = iterator.get_next()
    assert isinstance(iterator, RecordedIterator) and [one.dataset for one in recorded] == [dataset]
    assert element["x"].op.type == "Placeholder" and recorded[0].elements == [element]
    assert iterator.output_types == {"x": tf.float32} and iterator.output_shapes == {"x": tf.TensorShape([])}
    assert iterator.element_spec == dataset.element_spec and iterator.output_classes == {"x": tf.Tensor}
    assert iterator.initializer.type == "NoOp"


def test_sparse_elements_are_recorded_and_others_are_not(graph):
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    ragged = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    with recorded_iterators() as recorded:
        element = tf.data.Dataset.from_tensors(sparse).make_one_shot_iterator().get_next()
        real = tf.data.make_initializable_iterator(ragged)
    assert isinstance(element, tf.SparseTensor) and len(recorded) == 1
    assert not isinstance(real, RecordedIterator) and isinstance(real, tf.data.Iterator)


def test_a_dataset_that_needs_a_feed_gets_a_real_iterator(graph):
    fed = tf.data.Dataset.from_tensor_slices(tf.placeholder(tf.float32, [3]))
    with recorded_iterators() as recorded:
        iterator = fed.make_initializable_iterator()
    assert recorded == [] and not isinstance(iterator, RecordedIterator)


def test_a_string_handle_makes_it_real(graph):
    with recorded_iterators() as recorded:
        iterator = tf.data.Dataset.range(3).make_one_shot_iterator()
        handle = iterator.string_handle()
        feedable = tf.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([]))
    assert recorded[0].real is not None
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run([feedable.get_next(), iterator.get_next()]) in ([0, 1], [1, 0])


def test_other_graphs_and_the_time_after_are_not_affected(graph):
    with recorded_iterators() as recorded:
        with tf.Graph().as_default():
            tf.data.Dataset.range(3).make_one_shot_iterator()
    assert not isinstance(tf.data.Dataset.range(3).make_one_shot_iterator(), RecordedIterator)
    assert recorded == []
