"""Many steps per `session.run` leave the same bits as single steps, also at the end of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from loop_runs import EveryStep, counting_model

import moxing.tensorflow as mox
from moxing.tensorflow.executor.build.step import Checks, CheckValues
from moxing.tensorflow.executor.loop.step_loop import RepeatedStep, conditions, read_checks
from moxing.tf1.graph.run_graph import run_graph

# Functions of tf.layers and the cells of tf.nn.rnn_cell say that they are deprecated.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.tf\.layers\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.tf\.nn\.rnn_cell\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.layer\.(add_variable|apply). is deprecated:UserWarning"),
]


tf.keras.layers  # noqa: B018  (imported now, so that every test finds the same state)

STEPS = 25
ROWS = np.random.RandomState(0).rand(64, 6).astype(np.float32)


@pytest.fixture(autouse=True)
def all_lines(caplog):
    caplog.set_level("DEBUG", logger="tensorflow")


def rows(mode):
    data = tf.data.Dataset.from_tensor_slices((ROWS, np.arange(64) % 5)).shuffle(64).repeat()
    return data.make_one_shot_iterator().get_next()


def momentum():
    return tf.train.MomentumOptimizer(0.05, 0.9)


def trained(directory, build: Callable[..., Any], single: bool, optimizer_fn=momentum, **arguments: Any):
    """The variables and the result of a run; `build(x, labels)` gives the loss."""
    hook = EveryStep()

    def model_fn(inputs, mode):
        loss = build(*inputs)
        return mox.ModelSpec(loss=loss, log_info={"loss": loss}, hooks=[hook] if single else None)

    settings = {"batch_size": 8, "max_number_of_steps": STEPS, "input_fn": rows, **arguments}
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        result = mox.run(model_fn=model_fn, optimizer_fn=optimizer_fn, run_mode="TRAIN", log_dir=directory, **settings)
    assert hook.steps >= STEPS or not single
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(directory)))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}, result


def dense(x, size, name="dense"):
    kernel = tf.get_variable(f"{name}/kernel", [x.shape[-1].value, size])
    return tf.matmul(x, kernel) + tf.get_variable(f"{name}/bias", [size], initializer=tf.zeros_initializer())


def cross_entropy(logits, labels):
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def batch_norm(x, labels):
    x = tf.layers.batch_normalization(dense(x, 8), training=True)
    return cross_entropy(dense(tf.nn.relu(x), 5, "logits"), labels)


def keras_batch_norm(x, labels):
    x = tf.keras.layers.BatchNormalization()(dense(x, 8), training=True)
    return cross_entropy(dense(tf.nn.relu(x), 5, "logits"), labels)


def plain_model(x, labels):
    return cross_entropy(dense(x, 5), labels)


def with_cond(x, labels):
    step = tf.train.get_or_create_global_step()
    logits = dense(x, 5)
    scaled = tf.cond(tf.equal(step % 3, 0), lambda: logits * 2.0, lambda: tf.tanh(logits))
    return cross_entropy(scaled, labels)


def with_while(x, labels):
    kernel = tf.get_variable("recurrent", [6, 6])
    _, x = tf.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, kernel))), [0, x])
    return cross_entropy(dense(x, 5), labels)


def with_dynamic_rnn(x, labels):
    cell = tf.nn.rnn_cell.LSTMCell(4, initializer=tf.glorot_uniform_initializer(seed=1))
    lengths = tf.cast(labels % 3 + 1, tf.int32)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(x, [-1, 3, 2]), dtype=tf.float32, sequence_length=lengths)
    return cross_entropy(dense(outputs[:, -1], 5), labels)


def with_embedding(x, labels):
    table = tf.get_variable("table", [5, 6])
    return tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, labels) - x))


def with_keras_lstm(x, labels):
    initial = {
        "kernel_initializer": tf.keras.initializers.glorot_uniform(seed=1),
        "recurrent_initializer": tf.keras.initializers.glorot_uniform(seed=2),
    }
    x = tf.keras.layers.LSTM(4, **initial)(tf.reshape(x, [-1, 3, 2]))
    return cross_entropy(dense(x, 5), labels)


def with_py_func(x, labels):
    calls = []

    def scale(values):
        calls.append(1)
        return (values * (1 + 0.1 * len(calls))).astype(np.float32)

    scaled = tf.py_func(scale, [x], tf.float32)
    scaled.set_shape(x.shape)
    return cross_entropy(dense(scaled, 5), labels)


def with_partitions(x, labels):
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(3)):
        kernel = tf.get_variable("kernel", [6, 5])
    return cross_entropy(tf.matmul(x, kernel), labels)


def with_dropout(x, labels):
    x = tf.nn.dropout(dense(x, 16), rate=0.5, seed=7)
    return cross_entropy(dense(x, 5, "logits"), labels)


def with_random_normal(x, labels):
    return cross_entropy(dense(x + tf.random_normal(tf.shape(x), stddev=0.1, seed=9), 5), labels)


def with_update_op(x, labels):
    average = tf.get_variable("average", [6], initializer=tf.zeros_initializer(), trainable=False)
    mean = tf.reduce_mean(x, axis=0)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign(average, 0.9 * average + 0.1 * mean))
    return plain_model(x, labels)


def with_table(x, labels):
    keys = tf.lookup.KeyValueTensorInitializer(tf.range(5, dtype=tf.int64), tf.constant([4, 3, 2, 1, 0], tf.int64))
    return plain_model(x, tf.lookup.StaticHashTable(keys, 0).lookup(labels))


def schedule():
    step = tf.train.get_or_create_global_step()
    return tf.train.MomentumOptimizer(tf.train.exponential_decay(0.1, step, 5, 0.7, staircase=True), 0.9)


def piecewise():
    step = tf.train.get_or_create_global_step()
    return tf.train.GradientDescentOptimizer(tf.train.piecewise_constant(step, [4, 11], [0.1, 0.05, 0.01]))


def adam():
    return tf.train.AdamOptimizer(0.01)


CASES = {
    "batch norm, momentum": (batch_norm, momentum),
    "Keras batch norm": (keras_batch_norm, momentum),
    "exponential decay": (plain_model, schedule),
    "piecewise constant": (plain_model, piecewise),
    "cond on global_step": (with_cond, momentum),
    "while": (with_while, momentum),
    "dynamic_rnn": (with_dynamic_rnn, adam),
    "embedding, Adam": (with_embedding, adam),
    "Keras LSTM": (with_keras_lstm, adam),
    "py_func": (with_py_func, momentum),
    "partitioned variable": (with_partitions, momentum),
    "dropout": (with_dropout, momentum),
    "random normal": (with_random_normal, momentum),
    "update op": (with_update_op, momentum),
    "lookup table": (with_table, momentum),
}


@pytest.mark.parametrize("case", CASES)
def test_loop_equals_single_steps(case, tmp_path, caplog):
    build, optimizer_fn = CASES[case]
    many, result = trained(tmp_path / "many", build, False, optimizer_fn)
    assert not [record for record in caplog.records if "One step per session.run" in record.getMessage()]
    single, single_result = trained(tmp_path / "single", build, True, optimizer_fn)
    assert set(many) == set(single)
    assert many["global_step"] == single["global_step"] == STEPS
    for name, value in many.items():
        np.testing.assert_array_equal(value, single[name], err_msg=name)
    assert result.log_info == single_result.log_info
    assert result.samples == single_result.samples == 8 * STEPS


def test_the_loop_runs_several_steps_per_call(tmp_path):
    """The other tests compare something only if this holds."""
    calls = []
    original = tf.Session.run

    def counted(self, *args, **kwargs):
        calls.append(1)
        return original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.Session, "run", counted)
        trained(tmp_path / "many", plain_model, False, max_number_of_steps=400, log_every_n_steps=100)
        many = len(calls)
        calls.clear()
        trained(tmp_path / "single", plain_model, True, max_number_of_steps=400, log_every_n_steps=100)
    assert many < 100 < 400 <= len(calls)


def test_several_losses_in_the_loop(tmp_path):
    def run(directory, single):
        def model_fn(inputs, mode):
            x, labels = inputs
            with tf.variable_scope("one"):
                first = plain_model(x, labels)
            with tf.variable_scope("two"):
                second = plain_model(x * tf.stop_gradient(first), labels)
            return mox.ModelSpec(
                loss=[first, second], var_scopes=[["one"], ["two"]], hooks=[EveryStep()] if single else None
            )

        with tf.Graph().as_default():
            tf.set_random_seed(3)
            mox.run(input_fn=rows, model_fn=model_fn, optimizer_fn=[adam, momentum], run_mode="TRAIN", batch_size=8,
                    log_dir=directory, max_number_of_steps=STEPS)  # fmt: skip
        reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(directory)))
        return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    many, single = run(tmp_path / "many", False), run(tmp_path / "single", True)
    assert many["global_step"] == STEPS
    for name, value in many.items():
        np.testing.assert_array_equal(value, single[name], err_msg=name)


def count(directory, samples, **arguments):
    settings = {"run_mode": "TRAIN", "max_number_of_steps": 10**9, **arguments}
    result = mox.run(
        input_fn=lambda mode: tf.data.Dataset.range(samples), model_fn=counting_model, log_dir=directory, batch_size=4,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(1.0), **settings,
    )  # fmt: skip
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(directory)))
    return result, reader.get_tensor("total"), reader.get_tensor("global_step")


@pytest.mark.parametrize(("samples", "steps", "last"), [(94, 24, [92, 93]), (92, 23, [88, 89, 90, 91]), (1, 1, [0])])
def test_end_of_data_inside_the_loop(samples, steps, last, tmp_path, caplog):
    result, total, global_step = count(tmp_path, samples)
    assert result.global_step == global_step == steps
    assert result.samples == samples
    assert result.log_info == {"sum": float(sum(last)), "length": float(len(last))}
    assert total == sum(range(samples))
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("step:")]
    assert lines[-1].startswith(f"step: {steps - 1}(global step: {steps - 1})\t")
    assert lines[-1].endswith(f"\tsum: {sum(last):.3f}\tlength: {len(last):.3f}")


def test_end_of_data_in_evaluation_and_after_it(tmp_path):
    count(tmp_path, 40)
    result, _, _ = count(tmp_path, 94, run_mode="EVAL")
    assert result.samples == 94
    assert result.global_step == 10
    weighted = sum(sum(range(start, min(start + 4, 94))) * len(range(start, min(start + 4, 94)))
                   for start in range(0, 94, 4)) / 94  # fmt: skip
    assert result.log_info["sum"] == pytest.approx(weighted)
    again, total, global_step = count(tmp_path, 40)
    assert (again.global_step, global_step, total) == (20, 20, 2 * sum(range(40)))


def test_log_info_of_every_line_is_that_step_s(tmp_path, caplog):
    count(tmp_path, 1000, log_every_n_steps=7, max_number_of_steps=60)
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("step:")]
    steps = [0, 7, 14, 21, 28, 35, 42, 49, 56, 59]
    assert [line.split("\t")[0] for line in lines] == [f"step: {step}(global step: {step})" for step in steps]
    assert [line.split("\t")[2] for line in lines] == [f"sum: {16 * step + 6:.3f}" for step in steps]


def test_nothing_checked():
    assert conditions(Checks()) == []
    assert read_checks({}) == CheckValues()
    assert CheckValues() == CheckValues(finite=True, halt=0, reached=0, next_steps=1, guard=0)


def test_fetched_numbers_become_plain_ones():
    values = read_checks({"finite": np.bool_(False), "next_steps": np.int64(7), "rounds": np.int64(3)})
    assert values == CheckValues(finite=False, next_steps=7)
    assert type(values.finite) is bool and type(values.next_steps) is int


@pytest.mark.parametrize(
    ("finite", "halt", "next_steps", "goes_on"),
    [(True, 0, 5, True), (False, 0, 5, False), (True, 2, 5, False), (True, 0, 1, True)],
)
def test_conditions(finite, halt, next_steps, goes_on):
    with tf.Graph().as_default(), tf.Session() as session:
        checks = {"finite": finite, "halt": halt, "next_steps": np.int64(next_steps)}
        tensors = {name: tf.constant(value) for name, value in checks.items()}
        assert all(session.run(conditions(Checks(**tensors)))) is goes_on


def test_rounds_checks_and_asides():
    with run_graph(tf.Graph()), tf.Session() as session:
        count = tf.get_variable("count", initializer=0)
        step = count.assign_add(1)
        rows = tf.zeros([step, 2])
        rows.set_shape([None, 2])
        asides = {"rows": rows, "text": tf.as_string(step), "unknown": tf.placeholder_with_default([1.0], None) + 1.0}
        checks = {"number": (tf.identity(step), tf.constant(0))}
        loop = RepeatedStep(step.op, checks, lambda values: [values["number"] < 7], asides)
        session.run(count.initializer)

        def run(rounds, *wanted):
            return session.run(loop.outputs, {loop.rounds: rounds, **{loop.wants[name]: True for name in wanted}})

        done = run(3, "rows", "text")
        assert (done["rounds"], done["number"], done["rows"].shape, done["text"]) == (3, 3, (3, 2), b"3")
        assert run(1)["rows"].shape == (0, 2)
        assert run(1, "unknown")["unknown"].tolist() == [2.0]
        # A check ends the loop early; the asides belong to the last round only.
        done = run(10, "text")
        assert (done["rounds"], done["number"], done["text"]) == (2, 7, b"")
        assert session.run(count) == 7
