"""Accumulated gradients: against NumPy, in a run, over an interruption."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import (
    FIRST,
    GRADIENTS,
    STEPS,
    Trained,
    close,
    computed,
    means,
    momentum,
    wrapped,
)

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.wrappers.ema import MARK
from moxing.tensorflow.optimizer.wrappers.wrapper import flush_op


@pytest.mark.parametrize("count", [1, 4, 5])
@pytest.mark.parametrize("sparse", [(), ("rows", "kernel")])
def test_batch_gradients(count, sparse):
    """20 micro-steps are 20 / n steps with n times the batch."""
    trained = Trained(wrapped("batch_gradients", num_batches=count), sparse=sparse)
    close(trained.run(), computed(momentum(), means(count)))
    assert trained.session.run(trained.step) == STEPS


def test_batch_gradients_between_two_updates():
    trained = Trained(wrapped("batch_gradients", num_batches=8))
    for name, value in trained.run(7).items():
        np.testing.assert_array_equal(value, FIRST[name])
    assert trained.session.run(trained.step) == 7
    close(trained.run(8, 7), computed(momentum(), means(8, GRADIENTS[:8])))


def test_what_is_left_over_is_applied_once():
    trained = Trained(wrapped("batch_gradients", num_batches=8))
    with trained.graph.as_default():
        flush = flush_op([trained.optimizer])
    trained.run()
    trained.session.run(flush)
    expected = computed(momentum(), means(8))
    close(trained.values(), expected)
    trained.session.run(flush)
    close(trained.values(), expected)


def test_rows_of_sparse_gradients_that_have_none_stay():
    """Momentum of TensorFlow leaves rows alone that a sparse gradient does not name; so does it here."""

    def run(optimizer, gradient, steps):
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.get_variable("w", initializer=np.ones([5, 2]), use_resource=True)
            rows = tf.placeholder(tf.int32, [None])
            slices = tf.IndexedSlices(tf.ones([tf.size(rows), 2], tf.float64), rows, tf.shape(w))
            train = optimizer.apply_gradients([(slices, w)])
            session.run(tf.global_variables_initializer())
            for named in steps:
                session.run(train, {rows: named})
            return session.run(w)

    many = run(wrapped("batch_gradients", num_batches=2)(), None, [[0, 1], [1, 2], [1], [4]])
    few = run(tf.train.MomentumOptimizer(0.125 / 2, 0.875), None, [[0, 1, 1, 2], [1, 4]])
    np.testing.assert_allclose(many, few, rtol=1e-6)


def test_flush_comes_after_apply():
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="flush_op comes after apply_gradients"):
        wrapped("batch_gradients", num_batches=2)().flush_op()


def test_workers_that_nobody_counted():
    """A cluster of TF_CONFIG, say."""
    mox.set_flag("sync_replicas", False)
    with tf.Graph().as_default(), tf.device("/job:worker/task:1"):
        wrapped("batch_gradients", num_batches=2)()
        with pytest.raises(
            ValueError, match="sync_on_apply=True.*the number of workers is unknown. Pass --worker_hosts"
        ):
            wrapped("batch_gradients", num_batches=2, sync_on_apply=True)()


def test_half_precision_is_added_up_in_32_bits():
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [1], tf.float16, tf.zeros_initializer(), use_resource=True)
        gradient = tf.placeholder(tf.float16, [1])
        sgd = tf.train.GradientDescentOptimizer(1.0)
        fn = wrapped(
            "batch_gradients", wrapped("lookahead", wrapped("ema", sgd, decay=0.999), k=1, alpha=1), num_batches=4
        )
        optimizer = fn()
        train = optimizer.apply_gradients([(gradient, w)])
        session.run(tf.global_variables_initializer())
        for value in (2048, 1, 1, 2):
            session.run(train, {gradient: [value]})
        assert session.run(w) == [-513]  # 2048 + 1 is 2048 in half precision
        np.testing.assert_allclose(session.run(optimizer.get_slot(w, "average")), [-0.513], rtol=1e-3)
        assert optimizer.get_slot(w, "slow").dtype == tf.float32


ROWS = np.random.RandomState(3).rand(96, 3).astype(np.float32)


def rows(mode):
    return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(ROWS)).get_next()


def model_fn(inputs, mode):
    kernel = tf.get_variable("kernel", [3, 2], initializer=tf.constant_initializer(0.5))
    bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(inputs, kernel) + bias - 1.0))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss})


def stack():
    fn = wrapped("lars", mox.get_optimizer_fn("momentum", 0.1), ratio=0.05, weight_decay=0.01)
    return wrapped("batch_gradients", wrapped("ema", fn, decay=0.5), num_batches=4)()


def checkpoint(directory):
    reader = tf.train.load_checkpoint(str(directory))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def run(directory, towers=1, update=None, scale=1, steps=12, optimizer_fn=stack, batch=8):
    mox.set_flag("num_gpus", towers)
    mox.set_flag("variable_update", update)
    mox.set_flag("loss_scale", scale)
    mox.run(
        input_fn=rows,
        model_fn=model_fn,
        optimizer_fn=optimizer_fn,
        run_mode="TRAIN",
        batch_size=batch // towers,
        log_dir=str(directory),
        max_number_of_steps=steps,
        log_every_n_steps=0,
    )
    saved = checkpoint(directory)
    return {name: value for name, value in saved.items() if not name.startswith("moxing/loss_scale/")}


@pytest.fixture(scope="module")
def one_tower(tmp_path_factory):
    return run(tmp_path_factory.mktemp("one"))


def test_micro_steps_of_a_run_are_steps_with_a_larger_batch(one_tower, tmp_path):
    def without():
        fn = wrapped("lars", mox.get_optimizer_fn("momentum", 0.1), ratio=0.05, weight_decay=0.01)
        return wrapped("ema", fn, decay=0.5)()

    large = run(tmp_path, steps=3, optimizer_fn=without, batch=32)
    assert one_tower["global_step"] == 12 and one_tower[MARK] == 3
    for name in ("kernel", "bias", "kernel/Momentum", "kernel/ExponentialMovingAverage"):
        np.testing.assert_allclose(one_tower[name], large[name], rtol=2e-5, atol=1e-6, err_msg=name)
    assert set(one_tower) - set(large) == {
        "kernel/BatchGradients",
        "bias/BatchGradients",
        "moxing/optimizer/batch_gradients/count",
        "moxing/optimizer/batch_gradients/missing",
    }


@pytest.mark.parametrize(
    ("towers", "update", "scale"),
    [(1, None, "dynamic"), (2, "parameter_server", 1), (2, "replicated", 1), (2, "replicated", "dynamic")],
)
def test_all_layouts_train_the_same(towers, update, scale, one_tower, tmp_path):
    other = run(tmp_path, towers, update, scale)
    assert set(other) == set(one_tower)
    for name, value in one_tower.items():
        np.testing.assert_allclose(other[name], value, rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 6])
def test_an_interrupted_run_goes_on_in_the_middle_of_an_accumulation(first, one_tower, tmp_path):
    halfway = run(tmp_path, steps=first)
    assert halfway["moxing/optimizer/batch_gradients/count"] == first % 4
    assert np.abs(halfway["kernel/BatchGradients"]).max() > 0
    whole = run(tmp_path)
    for name, value in one_tower.items():
        np.testing.assert_array_equal(whole[name], value, err_msg=name)


def test_two_losses_have_counters_of_their_own(tmp_path):
    def two(inputs, mode):
        one, other = (tf.get_variable(f"{name}/w", [3, 1]) for name in ("one", "other"))
        losses = [tf.reduce_mean(tf.square(tf.matmul(inputs, w) - 1.0)) for w in (one, other)]
        return mox.ModelSpec(loss=losses, var_scopes=[["one"], ["other"]], log_info={"loss": losses[0]})

    mox.run(
        input_fn=rows,
        model_fn=two,
        optimizer_fn=[wrapped("batch_gradients", mox.get_optimizer_fn("sgd", 0.1), num_batches=n) for n in (4, 5)],
        run_mode="TRAIN",
        batch_size=8,
        log_dir=str(tmp_path),
        max_number_of_steps=7,
    )
    saved = checkpoint(tmp_path)
    assert saved["moxing/optimizer/batch_gradients/count"] == 3
    assert saved["moxing/optimizer/batch_gradients/count_1"] == 2
