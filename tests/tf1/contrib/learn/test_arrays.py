"""Input functions for arrays, and arrays from pandas."""

import numpy as np
import pandas
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib.learn import arrays


def read(input_fn):
    found = input_fn()
    if isinstance(found, tf.data.Dataset | tf.compat.v2.data.Dataset):
        found = tf.data.make_one_shot_iterator(found).get_next()
    batches = []
    with tf.Session() as session:
        for _ in range(3):
            try:
                batches.append(session.run(found))
            except tf.errors.OutOfRangeError:
                break
    return batches


def test_batches_of_arrays_and_of_input_functions():
    x, y = np.arange(6.0).reshape(3, 2), [7, 8, 9]
    with tf.Graph().as_default():
        first, last = read(arrays.input_function(None, arrays.Feed(x, y, 2, 1, False)))
        assert first[0].tolist() == [[0, 1], [2, 3]] and first[0].dtype == np.float32 and last[1].tolist() == [9]
        feed = arrays.Feed({"a": x}, None, None, 1, False)
        (only,) = read(arrays.input_function(None, feed, lambda f, t: ({"a": f["a"] * 2}, t)))
        assert only["a"].tolist() == (2 * x).tolist()
        (shuffled, *_) = read(arrays.input_function(None, arrays.Feed(x, y, None, None, True)))
        assert sorted(shuffled[1].tolist()) == y

        nothing = arrays.Feed(None, None, None, None, False)
        own = arrays.input_function(
            lambda: (tf.constant([1]), tf.constant([2])), nothing, features_of=lambda f: {"f": f}
        )
        assert read(own)[0][0] == {"f": [1]}
    # A constant ends after one batch, a dataset by itself.
    with tf.Graph().as_default():
        assert len(read(arrays.ending(arrays.input_function(lambda: np.ones([2, 1]), nothing)))) == 1
    with tf.Graph().as_default():
        assert len(read(arrays.ending(lambda: tf.data.Dataset.range(2)))) == 2
    for input_fn, feed, message in [
        (None, nothing, "expected either x or input_fn"),
        (len, nothing._replace(x=x), "expected either x or input_fn"),
        (len, nothing._replace(batch_size=3), "batch_size=3"),
    ]:
        with pytest.raises(ValueError, match=message):
            arrays.input_function(input_fn, feed)
    with pytest.raises(ValueError, match=r"as many rows as each other, got \[2, 3\]"):
        arrays.input_function(None, arrays.Feed(x, [1, 2], None, 1, False))()


def test_pandas():
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    assert arrays.extract_pandas_data(frame).tolist() == [[1, 0.5], [2, 1.5]]
    assert arrays.extract_pandas_matrix(frame).tolist() == [[1, 0.5], [2, 1.5]]
    assert arrays.extract_pandas_labels(frame[["a"]]).tolist() == [[1], [2]]
    assert arrays.extract_pandas_labels(frame["a"]).tolist() == [1, 2]
    assert arrays.extract_pandas_data([1]) == arrays.extract_pandas_labels([1]) == [1]
    with pytest.raises(ValueError, match="columns: c"):
        arrays.extract_pandas_data(pandas.DataFrame({"c": ["x"]}))
    with pytest.raises(ValueError, match="Only one column for labels"):
        arrays.extract_pandas_labels(frame)
