"""What adamw, lamb and nadam share: sparse gradients, slices, slots, a run."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import (
    OURS,
    RATE,
    STEPS,
    Trained,
    adamw,
    close,
    computed,
    lamb,
    nadam,
)

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.factory import get_optimizer_fn


@pytest.mark.parametrize("name", ["adamw", "nadam", "lamb"])
def test_sparse_gradients_and_slices_change_nothing(name):
    """Rows that are named twice count twice, and a variable in two slices has one norm."""
    update, rate = {"adamw": (adamw(), RATE), "nadam": (nadam, RATE), "lamb": (lamb(), RATE / 2)}[name]
    arguments = OURS if name == "nadam" else {"weight_decay": 0.05, **OURS}
    close(Trained(get_optimizer_fn(name, rate, **arguments), sparse=["rows", "bias"]).run(), computed(update))
    close(Trained(get_optimizer_fn(name, rate, **arguments), partitions=2).run(), computed(update))


@pytest.mark.parametrize("name", ["adamw", "nadam", "lamb"])
def test_rows_without_a_gradient_move_by_their_moments(name):
    def run(gradient):
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.get_variable("w", initializer=np.ones([4, 2]), use_resource=True)
            train = [get_optimizer_fn(name, 0.1)().apply_gradients([(gradient(w), w)])]
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            return session.run(w)

    by_rows = run(lambda w: tf.IndexedSlices(tf.ones([2, 2], tf.float64), tf.constant([3, 1]), tf.shape(w)))
    dense = run(lambda w: tf.constant([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]], tf.float64))
    np.testing.assert_allclose(by_rows, dense, rtol=1e-12)


@pytest.mark.parametrize("name", ["adamw", "nadam", "lamb"])
def test_slots_and_checkpoints(name, tmp_path):
    fn = get_optimizer_fn(name, 0.1)
    key = fn().get_name()
    trained = Trained(fn)
    trained.run(8)
    path = trained.save(tmp_path)
    names = {name for name, _ in tf.train.list_variables(path)}
    assert {f"net/kernel/{key}/m", f"net/kernel/{key}/v", f"{key}/step"} <= names
    whole = trained.run(STEPS, 8)
    for name, value in Trained(fn).restore(path).run(STEPS, 8).items():
        np.testing.assert_array_equal(value, whole[name])


@pytest.mark.parametrize("name", ["adamw", "nadam", "lamb"])
def test_thirty_two_bits(name):
    wide = Trained(get_optimizer_fn(name, 0.01)).run()
    for key, value in Trained(get_optimizer_fn(name, 0.01), dtype=tf.float32).run().items():
        np.testing.assert_allclose(value, wide[key], rtol=2e-5, atol=2e-6)


def test_a_variable_that_is_no_resource():
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=False):
        w = tf.get_variable("w", [2])
        with pytest.raises(TypeError, match="AdamW: w is not a resource variable"):
            get_optimizer_fn("adamw", 0.1)().minimize(tf.reduce_sum(w))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adamw", "nadam", "lamb"])
def test_in_a_run_with_dynamic_loss_scale_and_towers(name, tmp_path):
    """The same weights with one tower, and with two of half the batch; the slots have the same names."""

    def model_fn(inputs, mode):
        kernel = tf.get_variable("kernel", [3, 2], initializer=tf.constant_initializer(0.5))
        loss = tf.reduce_mean(tf.square(tf.matmul(inputs, kernel) - 1.0))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    def input_fn(mode):
        rows = np.random.RandomState(0).rand(96, 3).astype(np.float32)
        return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(rows)).get_next()

    kernels, names = [], []
    for towers, scale, update in ((1, 1, None), (2, "dynamic", "parameter_server"), (2, 1, "replicated")):
        mox.set_flag("num_gpus", towers)
        mox.set_flag("loss_scale", scale)
        mox.set_flag("variable_update", update)
        directory = str(tmp_path / f"{update}")
        mox.run(
            input_fn=input_fn,
            model_fn=model_fn,
            optimizer_fn=get_optimizer_fn(name, 0.05),
            run_mode="TRAIN",
            batch_size=12 // towers,
            log_dir=directory,
            max_number_of_steps=8,
        )
        reader = tf.train.load_checkpoint(directory)
        kernels.append(reader.get_tensor("kernel"))
        names.append({key for key in reader.get_variable_to_shape_map() if not key.startswith("moxing/loss_scale")})
    assert names[0] == names[1] == names[2]
    for kernel in kernels[1:]:
        np.testing.assert_allclose(kernel, kernels[0], rtol=2e-5)
