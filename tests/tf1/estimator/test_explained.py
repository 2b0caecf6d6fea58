"""Errors of an Estimator name the argument, the value and what would be right."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow import estimator
from moxing.tf1.estimator.explained import explained


def data():
    return tf.data.Dataset.from_tensors(([1.0], [2.0]))


def returns(result):
    return lambda features, labels, mode: result(mode, tf.reduce_sum(features))


CASES = [
    (
        returns(lambda mode, loss: estimator.EstimatorSpec(mode, loss=loss)),
        {},
        r"Missing train_op\. model_fn returned EstimatorSpec\(mode='train', train_op=None\): expected an operation",
    ),
    (
        returns(lambda mode, loss: estimator.EstimatorSpec(mode, train_op=tf.no_op())),
        {},
        r"Missing loss\. model_fn returned EstimatorSpec\(mode='train', loss=None\): expected a scalar tensor",
    ),
    (
        returns(lambda mode, loss: {"a": 3}),
        {},
        r"model_fn should return an EstimatorSpec\. In mode 'train' it returned \{'a': 3\}: expected tf\.est",
    ),
    (
        returns(lambda mode, loss: None),
        {"input_fn": lambda: (1, 2, 3)},
        r"input_fn should return \(features, labels\) as a len 2 tuple\. It returned 3 values: \(1, 2, 3\)\. Put",
    ),
    (
        returns(lambda mode, loss: None),
        {"max_steps": 9},
        r"Can not provide both steps and max_steps\. Got steps=1 and max_steps=9: give steps for",
    ),
]


def test_errors_of_a_training_say_more(tmp_path):
    for model_fn, arguments, expected in CASES:
        one = estimator.Estimator(model_fn, str(tmp_path))
        with pytest.raises(ValueError, match=f"^{expected}"):
            one.train(**{"input_fn": data, "steps": 1, **arguments})


def test_a_dataset_is_no_input_fn(tmp_path):
    one = estimator.Estimator(lambda features, labels, mode: None, str(tmp_path))
    with tf.Graph().as_default():
        dataset = data()
    for call in (one.train, one.evaluate, lambda input_fn: next(one.predict(input_fn))):
        with pytest.raises(TypeError, match=r"^unsupported callable: input_fn=<.*Dataset.*such as lambda: dataset"):
            call(dataset)


def test_arguments_of_model_fn(tmp_path):
    with pytest.raises(ValueError, match=r"^model_fn \(.*does not include params.*Expected def model_fn\(features, "):
        estimator.Estimator(lambda features, labels, mode: None, str(tmp_path), params={"a": 1})


def test_errors_of_programs_stay_as_they_are():
    with pytest.raises(ValueError, match=r"^Missing loss\.$"), explained():
        raise ValueError("Missing loss.")
