"""`build_inputs`: batches, the shard of a worker, padding of workers in step, the probe."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, holds
from received_inputs import batches_of_inputs, input_config
from small_runs import batches_of, line_model, numbers, run

from moxing.tensorflow.executor.build.inputs import Share, build_inputs
from moxing.tensorflow.executor.checkpoints.position import Position
from moxing.tensorflow.executor.specs import ModeKeys


def test_workers_in_step_continue_with_padding():
    with tf.Graph().as_default():
        inputs = build_inputs(input_config(3), ModeKeys.TRAIN, share=Share(workers=2, index=1, in_step=True))
        assert batches_of_inputs(inputs, most=3) == [[[1]], [[0, 1]], [[0, 1]]]
        with tf.Session() as session:
            session.run(inputs.initializers)
            assert [int(session.run(inputs.batch_length())) for _ in range(3)] == [1, 0, 0]


def test_the_probe_does_not_move_the_training():
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = build_inputs(input_config(), ModeKeys.TRAIN, with_probe=True)
        session.run(inputs.initializers)
        session.run(inputs.probe.initializer)
        assert session.run(inputs.probe.tensors)[0].tolist() == [0, 1]
        assert session.run(inputs.towers)[0][0].tolist() == [0, 1]


def test_workers_read_disjoint_parts():
    for index, expected in ((0, [[[0, 2]], [[4, 6]], [[8]]]), (1, [[[1, 3]], [[5, 7]], [[9]]])):
        with tf.Graph().as_default():
            inputs = build_inputs(input_config(), ModeKeys.TRAIN, share=Share(workers=2, index=index))
            assert batches_of_inputs(inputs) == expected
            assert inputs.position_after(2) == Position(elements=8)


@pytest.mark.parametrize(("batch_size", "expected"), [(4, [4, 4, 2]), (5, [5, 5]), (1, [1] * 10), (16, [10])])
def test_auto_batch_keeps_the_short_tail(batch_size, expected):
    seen = batches_of(numbers(10), batch_size=batch_size)
    assert [len(outputs["0"]) for outputs in seen] == expected
    assert np.concatenate([outputs["0"] for outputs in seen]).tolist() == list(range(10))


@pytest.mark.parametrize("batch_size", [None, 3])
def test_ready_batches_are_not_batched(batch_size):
    def input_fn(mode):
        return tf.data.Dataset.range(10).batch(4).make_one_shot_iterator().get_next()

    seen = batches_of(input_fn, batch_size=batch_size, auto_batch=False)
    assert [outputs["0"].tolist() for outputs in seen] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    seen = batches_of(input_fn, batch_size=None)
    assert [len(outputs["0"]) for outputs in seen] == [4, 4, 2]


def test_static_shape_of_a_batch():
    shapes = []

    def model_fn(inputs, mode):
        shapes.append(inputs[0].shape.as_list())
        return line_model(inputs, mode)

    def input_fn(repeat):
        def build(mode):
            dataset = tf.data.Dataset.from_tensor_slices(np.zeros([6, 3, 2], np.float32))
            return (dataset.repeat() if repeat else dataset).make_one_shot_iterator().get_next()

        return build

    run(model_fn=model_fn, input_fn=input_fn(False), max_number_of_steps=1)
    run(model_fn=model_fn, input_fn=input_fn(True), max_number_of_steps=1)
    assert shapes == [[None, 3, 2], [2, 3, 2]]


def test_sample_count():
    assert run(input_fn=numbers(7), max_number_of_steps=99).samples == 7
    assert run(input_fn=numbers(7), max_number_of_steps=2).samples == 4
    ready = {"input_fn": lambda mode: tf.data.Dataset.range(7).batch(3), "max_number_of_steps": 99}
    assert run(**ready, batch_size=None).samples == 7
    assert run(**ready, batch_size=50, auto_batch=False).samples == 7
    assert run(input_fn=numbers(7), batch_size=None, max_number_of_steps=5).samples == 5


def ragged_py_func(values, shape):
    """Sample n is `[n, n, ..., n]`, n times."""

    def input_fn(mode):
        number = tf.data.Dataset.from_tensor_slices(np.array(values, np.int64)).make_one_shot_iterator().get_next()
        row = tf.py_func(lambda n: np.full([n], n, np.int64), [number], tf.int64)
        if shape is not None:
            row.set_shape(shape)
        return number, row

    return input_fn


@pytest.mark.parametrize("shape", [[None], None])
def test_samples_of_unequal_size_are_padded_with_zeros(shape):
    first, second = batches_of(ragged_py_func([2, 1, 3], shape))
    assert first["1"].tolist() == [[2, 2], [1, 0]]
    assert second["1"].tolist() == [[3, 3, 3]]
    assert first["0"].tolist() == [2, 1]


def test_padding_of_matrices_and_strings():
    def input_fn(mode):
        number = tf.data.Dataset.range(1, 4).make_one_shot_iterator().get_next()
        matrix = tf.py_func(lambda n: np.full([n, 4 - n], n, np.float32), [number], tf.float32)
        word = tf.py_func(lambda n: np.array([b"x" * n] * n, object), [number], tf.string)
        word.set_shape([None])
        return matrix, word

    (only,) = batches_of(input_fn, batch_size=3)
    expected = np.zeros([3, 3, 3], np.float32)
    for n in (1, 2, 3):
        expected[n - 1, :n, : 4 - n] = n
    np.testing.assert_array_equal(only["0"], expected)
    assert only["1"].tolist() == [[b"x", b"", b""], [b"xx", b"xx", b""], [b"xxx", b"xxx", b"xxx"]]


def test_rank_unknown_scalars_are_batched():
    def input_fn(mode):
        number = tf.data.Dataset.range(5).make_one_shot_iterator().get_next()
        return tf.py_func(lambda n: np.float32(n * n), [number], tf.float32)

    seen = batches_of(input_fn)
    assert [outputs["0"].tolist() for outputs in seen] == [[0, 1], [4, 9], [16]]


def test_rank_unknown_beside_a_table_and_a_dict():
    def input_fn(mode):
        word = tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).make_one_shot_iterator().get_next()
        keys = tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], tf.constant([1, 2, 3], tf.int64))
        number = tf.lookup.StaticHashTable(keys, -1).lookup(word)
        return {"n": number, "row": tf.py_func(lambda n: np.full([n], n, np.int64), [number], tf.int64)}

    first, second = batches_of(input_fn)
    assert first["0"].tolist() == [1, 2]
    assert first["1"].tolist() == [[1, 0], [2, 2]]
    assert second["1"].tolist() == [[3, 3, 3]]


def test_sparse_beside_unknown_size():
    def mixed(mode):
        sparse = tf.sparse.from_dense(tf.constant([1, 0]))
        size = tf.random_uniform([], 1, 3, tf.int32, seed=1)
        return sparse, tf.zeros([size])

    assert holds(error_of(ValueError, input_fn=mixed), "input_fn", "sparse", "set_shape", "auto_batch=False")
