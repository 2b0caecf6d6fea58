"""Static shapes and iterator properties that `input_fn` and `model_fn` see."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from received_inputs import DATA, received

import moxing.tensorflow as mox


def static_shapes(input_fn, batch_size=None) -> list[Any]:
    shapes = []

    def model_fn(inputs, mode):
        shapes.extend(tensor.shape for tensor in inputs)
        w = tf.get_variable("w", initializer=0.0)
        return mox.ModelSpec(loss=w * (1.0 + 0.0 * tf.cast(tf.size(inputs[0]), tf.float32)))

    mox.run(
        input_fn=input_fn, model_fn=model_fn, optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.1),
        run_mode="TRAIN", batch_size=batch_size, max_number_of_steps=1,
    )  # fmt: skip
    return [shape.as_list() if shape.rank is not None else None for shape in shapes]


def hidden(value, shape):
    tensor = tf.py_func(lambda: value, [], tf.float32)
    if shape is not None:
        tensor.set_shape(shape)
    return tensor


def test_set_shape_is_kept():
    value = np.zeros([2, 3], np.float32)

    def input_fn(mode):
        return hidden(value, [2, 3]), hidden(value, [None, 3]), hidden(value, None)

    assert static_shapes(input_fn) == [[2, 3], [None, 3], None]
    assert static_shapes(input_fn, batch_size=4) == [[4, 2, 3], [4, None, 3], [4, None, None]]


def test_set_shape_on_the_element_itself():
    def input_fn(mode):
        dataset = tf.data.Dataset.from_generator(lambda: iter([np.zeros([2, 3], np.float32)]), tf.float32)
        element = dataset.make_one_shot_iterator().get_next()
        element.set_shape([2, 3])
        return element

    assert static_shapes(input_fn) == [[2, 3]]
    assert static_shapes(input_fn, batch_size=2) == [[None, 2, 3]]


def test_v1_shapes_in_input_fn():
    def input_fn(mode):
        element = tf.data.Dataset.from_tensor_slices(DATA).make_one_shot_iterator().get_next()
        assert element.shape[0].value == 4
        assert element.get_shape().as_list() == [4]
        return element

    assert len(received(input_fn)) == 7


def test_iterator_properties_of_that_time():
    def input_fn(mode):
        iterator = tf.data.Dataset.from_tensor_slices((DATA, np.arange(7))).make_one_shot_iterator()
        assert iterator.output_types == (tf.float32, tf.int64)
        assert [shape.as_list() for shape in iterator.output_shapes] == [[4], []]
        return iterator.get_next(name="named")

    assert len(received(input_fn)) == 7
