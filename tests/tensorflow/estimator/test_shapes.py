"""A checkpoint with other shapes than the model is refused before it is restored."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow import estimator


def make(model_dir, initial, saver=lambda: None, partitioner=None):
    def model_fn(features, labels, mode):
        weight = tf.get_variable("weight", initializer=tf.constant(initial), partitioner=partitioner)
        loss = tf.reduce_mean(tf.square(tf.convert_to_tensor(weight) - features))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        scaffold = tf.train.Scaffold(saver=saver())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=step, scaffold=scaffold)

    return estimator.Estimator(model_fn, str(model_dir))


def input_fn():
    return tf.data.Dataset.from_tensors(1.0).repeat()


def step_of(model_dir):
    return tf.train.load_variable(str(model_dir), "global_step")


def test_another_shape_is_an_error_that_names_the_variable(tmp_path):
    make(tmp_path, 1.0).train(input_fn, steps=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"weight has shape \[\] in .*ckpt-2 and shape \[3\]"):
        make(tmp_path, [1.0, 2.0, 3.0]).train(input_fn, steps=2)
    assert step_of(tmp_path) == 2


def test_the_same_shape_and_new_slices_are_restored(tmp_path):
    make(tmp_path, [1.0, 2.0, 3.0, 4.0]).train(input_fn, steps=2)
    slices = tf.fixed_size_partitioner(2)
    make(tmp_path, [1.0, 2.0, 3.0, 4.0], partitioner=slices).train(input_fn, steps=2)
    assert step_of(tmp_path) == 4


def test_a_saver_of_the_program_may_reshape(tmp_path):
    make(tmp_path, [1.0, 2.0, 3.0, 4.0]).train(input_fn, steps=2)
    make(tmp_path, [[1.0, 2.0], [3.0, 4.0]], lambda: tf.train.Saver(reshape=True)).train(input_fn, steps=2)
    assert step_of(tmp_path) == 4
