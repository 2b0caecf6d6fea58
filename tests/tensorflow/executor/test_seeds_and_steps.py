"""Several runs in one process, seeds, numbers of steps, the end of the data."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from line_problem import sgd
from small_runs import Recorder, falling, numbers, run, saved, scalar

import moxing.tensorflow as mox

# The functions of tf.layers and the cells of tf.nn.rnn_cell say that they are deprecated.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.tf\.layers\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.tf\.nn\.rnn_cell\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.layer\.(add_variable|apply). is deprecated:UserWarning"),
]

tf.keras.layers  # noqa: B018  (imported now, so that every test finds the same state)


@pytest.mark.slow
def test_several_runs_in_one_process(tmp_path):
    default = tf.Graph()
    with default.as_default():
        for target in (3, 5, 7):
            assert run(log_dir=tmp_path, max_number_of_steps=target).global_step == target
        assert run("EVAL", log_dir=tmp_path).log_info["w"] == -7
        assert run(max_number_of_steps=2).log_info["w"] == -1
        assert tf.get_default_graph() is default
    assert default.get_operations() == []


def test_the_caller_s_switches_are_put_back():
    from tensorflow.python.ops import control_flow_util

    before = (tf.executing_eagerly(), tf.resource_variables_enabled(), control_flow_util.ENABLE_CONTROL_FLOW_V2)
    run()
    with pytest.raises(TypeError):
        run(model_fn=lambda inputs, mode: None)
    assert before == (
        tf.executing_eagerly(),
        tf.resource_variables_enabled(),
        control_flow_util.ENABLE_CONTROL_FLOW_V2,
    )


def random_run(seed, directory):
    def input_fn(mode):
        return tf.data.Dataset.range(50).shuffle(50).repeat().make_one_shot_iterator().get_next()

    def model_fn(inputs, mode):
        x = tf.reshape(tf.cast(inputs[0], tf.float32), [-1, 1]) / 50
        w = tf.get_variable("w", shape=[1, 8], initializer=tf.random_normal_initializer())
        h = tf.nn.dropout(tf.matmul(x, w), rate=0.5)
        return mox.ModelSpec(loss=tf.reduce_mean(tf.square(h - 1.0)))

    with tf.Graph().as_default():
        if seed is not None:
            tf.set_random_seed(seed)
        run(input_fn=input_fn, model_fn=model_fn, log_dir=directory, optimizer_fn=sgd(0.1), max_number_of_steps=20)
    return saved(directory)["w"]


def test_seed_makes_runs_equal(tmp_path):
    first, second = random_run(11, tmp_path / "a"), random_run(11, tmp_path / "b")
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, random_run(12, tmp_path / "c"))
    assert not np.array_equal(random_run(None, tmp_path / "d"), random_run(None, tmp_path / "e"))


LAYERS = {
    "get_variable": lambda x: tf.matmul(x, tf.get_variable("kernel", [1, 3])),
    "tf.Variable": lambda x: tf.matmul(x, tf.Variable(tf.truncated_normal([1, 3]))),
    "tf.layers": lambda x: tf.layers.dense(x, 3),
    "Keras": lambda x: tf.keras.layers.Dense(3)(x),
    "Keras, initializer": lambda x: tf.keras.layers.Dense(3, kernel_initializer="he_normal")(x),
    "rnn_cell": lambda x: tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), [x], dtype=tf.float32)[0][0],
    "Keras LSTM": lambda x: tf.keras.layers.LSTM(3)(tf.expand_dims(x, 1)),
    "Keras dropout": lambda x: tf.keras.layers.Dropout(0.5)(
        tf.matmul(x, tf.get_variable("kernel", [1, 3])), training=True
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS)
def test_seed_reaches_the_variables_of_every_layer(kind, tmp_path):
    def model_fn(inputs, mode):
        x = tf.reshape(tf.cast(inputs[0], tf.float32), [-1, 1])
        return mox.ModelSpec(loss=tf.reduce_mean(tf.square(LAYERS[kind](x) - 1.0)))

    def once(directory):
        with tf.Graph().as_default():
            tf.set_random_seed(11)
            run(model_fn=model_fn, log_dir=directory, optimizer_fn=sgd(0.001))
        return saved(directory)

    first, second = once(tmp_path / "a"), once(tmp_path / "b")
    assert set(first) == set(second)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


@pytest.mark.slow
def test_seeds_of_operations_count_as_in_tensorflow(tmp_path):
    """Where only the operation has a seed, its numbers are the same in every run."""

    def initial():
        return tf.get_variable("w", shape=[4], initializer=tf.random_normal_initializer(seed=7))

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=tf.reduce_sum(initial()))

    with tf.Graph().as_default(), tf.Session() as session:
        w = initial()
        session.run(tf.global_variables_initializer())
        expected = session.run(w)
    run(model_fn=model_fn, log_dir=tmp_path / "a", optimizer_fn=sgd(0.0))
    run(model_fn=model_fn, log_dir=tmp_path / "b", optimizer_fn=sgd(0.0))
    np.testing.assert_array_equal(saved(tmp_path / "a")["w"], saved(tmp_path / "b")["w"])
    np.testing.assert_array_equal(saved(tmp_path / "a")["w"], expected)


@pytest.mark.parametrize(
    "steps",
    [sys.maxsize, sys.maxsize + 1, 2**31, 2**64, 10**30, float("inf"), np.int64(2**62), 1e9, np.float64(7)],
)
def test_huge_numbers_of_steps_run_to_the_end_of_the_data(steps):
    result = run(input_fn=numbers(10), max_number_of_steps=steps)
    assert result.samples == 10
    assert result.global_step == 5


def test_huge_numbers_of_steps_in_evaluation(tmp_path):
    run(log_dir=tmp_path)
    for steps in (sys.maxsize, 10**30):
        result = run("EVAL", log_dir=tmp_path, input_fn=numbers(10), max_number_of_steps=steps)
        assert (result.samples, result.global_step) == (10, 3)


@pytest.mark.parametrize("single_steps", [False, True])
def test_no_step_without_data(single_steps, tmp_path):
    """This loss does not need the input; where the data has ended there is no step all the same."""

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[Recorder()] if single_steps else None)

    for epoch in (1, 2, 3):
        result = run(model_fn=model_fn, log_dir=tmp_path, input_fn=numbers(10), max_number_of_steps=99)
        assert (result.global_step, saved(tmp_path)["w"]) == (5 * epoch, -5 * epoch)


@pytest.mark.parametrize("single_steps", [False, True])
def test_no_update_without_data(single_steps, tmp_path):
    """Nor does an operation of UPDATE_OPS run once more, though it does not need the input."""

    def model_fn(inputs, mode):
        count = tf.get_variable("count", initializer=0.0, trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0))
        return mox.ModelSpec(loss=falling(scalar(), inputs), hooks=[Recorder()] if single_steps else None)

    run(model_fn=model_fn, log_dir=tmp_path, input_fn=numbers(10), max_number_of_steps=99)
    assert (saved(tmp_path)["w"], saved(tmp_path)["count"]) == (-5, 5)


def test_end_of_data_saves_and_the_next_run_starts_over(tmp_path):
    assert run(log_dir=tmp_path, input_fn=numbers(8), max_number_of_steps=99).global_step == 4
    assert saved(tmp_path)["w"] == -4
    result = run(log_dir=tmp_path, input_fn=numbers(8), max_number_of_steps=99)
    assert result.global_step == 8
    assert saved(tmp_path)["w"] == -8


def test_log_dir_none_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(save_model_steps=1, save_summary_steps=1)
    assert result.checkpoint_path is None
    assert list(tmp_path.iterdir()) == []


def test_result_is_immutable(tmp_path):
    result = run(log_dir=str(tmp_path))
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-3")
    assert result.export_path is None
    with pytest.raises(AttributeError):
        result.global_step = 5
