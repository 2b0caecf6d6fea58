"""Large arrays of datasets are not in the graph; the data is the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph.data_arrays import LARGE_BYTES, arrays_outside_graph

BIG = np.arange(LARGE_BYTES, dtype=np.float32).reshape(-1, 8)


def read(iterator, session):
    element, found = iterator.get_next(), []
    while True:
        try:
            found.append(session.run(element))
        except tf.errors.OutOfRangeError:
            return found


@pytest.mark.parametrize("make", [tf.data.make_initializable_iterator, tf.data.make_one_shot_iterator])
def test_the_data_is_the_same(make):
    labels = np.arange(len(BIG))[::-1]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        with arrays_outside_graph():
            data = tf.data.Dataset.from_tensor_slices(({"x": BIG}, labels)).batch(1000)
        assert data.element_spec[0]["x"].shape.as_list() == [None, 8] and data.element_spec[1].dtype == tf.int64
        iterator = make(data)
        assert graph.as_graph_def().ByteSize() < 10_000
        if make is tf.data.make_initializable_iterator:
            session.run(iterator.initializer)
        batches = read(iterator, session)
    np.testing.assert_array_equal(np.concatenate([features["x"] for features, _ in batches]), BIG)
    np.testing.assert_array_equal(np.concatenate([label for _, label in batches]), labels)


def test_a_script_may_change_its_array():
    array = BIG.copy()
    with tf.Graph().as_default(), tf.Session() as session:
        with arrays_outside_graph():
            data = tf.data.Dataset.from_tensors(array)
        array[:] = 0
        iterator = tf.data.make_initializable_iterator(data)
        for _ in range(2):
            session.run(iterator.initializer)
            np.testing.assert_array_equal(session.run(iterator.get_next()), BIG)


@pytest.mark.parametrize(
    "array", [BIG[:10], np.array(["text"] * LARGE_BYTES), [1.0] * LARGE_BYTES], ids=["small", "text", "list"]
)
def test_what_stays_a_constant(array):
    with tf.Graph().as_default() as graph, arrays_outside_graph():
        tf.data.Dataset.from_tensor_slices(array)
    assert {"Const", "TensorSliceDataset"} == {node.op for node in graph.as_graph_def().node}


def test_columns_of_pandas():
    frame = pd.DataFrame({"x": np.arange(LARGE_BYTES), "y": np.ones(LARGE_BYTES)})
    with tf.Graph().as_default() as graph, tf.Session() as session:
        with arrays_outside_graph():
            data = tf.data.Dataset.from_tensor_slices((dict(frame), frame["y"])).skip(7)
        assert graph.as_graph_def().ByteSize() < 10_000
        features, label = session.run(tf.data.make_one_shot_iterator(data).get_next())
    assert (features["x"], features["y"], label) == (7, 1.0, 1.0)


def test_inside_functions_of_datasets_arrays_stay_constants():
    with tf.Graph().as_default(), tf.Session() as session:
        with arrays_outside_graph():
            data = tf.data.Dataset.range(1).flat_map(lambda _: tf.data.Dataset.from_tensor_slices(BIG))
        assert session.run(tf.data.make_one_shot_iterator(data).get_next()).tolist() == BIG[0].tolist()


def test_outside_nothing_changes():
    with pytest.raises(ZeroDivisionError), arrays_outside_graph():
        raise ZeroDivisionError
    with tf.Graph().as_default() as graph:
        tf.data.Dataset.from_tensor_slices(BIG)
    assert graph.as_graph_def().ByteSize() > BIG.nbytes
