"""Every way to share variables gives what one tower gives with a batch that is so many times as large."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from helpers.matrix import rotated
from moxing.tensorflow.parallel import Tower, TrainSetup
from moxing.tensorflow.parallel.replicated import Replicated
from moxing.tf1.graph.run_graph import run_graph

UPDATES = ("parameter_server", "replicated", "replicated_host")
SHARED_AND_COPIED = UPDATES[:2]
STEPS = 4

random = np.random.RandomState(0)
ROWS = random.rand(64, 6).astype(np.float32)
LABELS = random.randint(0, 5, 64)


def rows(mode):
    data = tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).repeat()
    return tf.data.make_one_shot_iterator(data).get_next()


def checkpoint(directory):
    reader = tf.train.load_checkpoint(str(directory))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def trained(directory, build, optimizer_fn, gpus=1, update=None, steps=STEPS):
    """The variables after a few steps on 8 rows each; `build(x, labels)` gives the loss."""

    def model_fn(inputs, mode):
        spec = build(*inputs)
        return spec if isinstance(spec, mox.ModelSpec) else mox.ModelSpec(loss=spec)

    mox.set_flag("num_gpus", gpus)
    mox.set_flag("variable_update", update)
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        mox.run(
            input_fn=rows, model_fn=model_fn, optimizer_fn=optimizer_fn, run_mode="TRAIN", batch_size=8 // gpus,
            log_dir=str(directory), max_number_of_steps=steps, log_every_n_steps=0, save_summary_steps=0,
        )  # fmt: skip
    return checkpoint(directory)


def assert_close(one, other, tolerance=2e-5):
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=tolerance, atol=tolerance, err_msg=name)


def assert_same_as_one_tower(tmp_path, build, optimizer_fn, update, tolerance=2e-5, **arguments):
    one = trained(tmp_path / "one", build, optimizer_fn, **arguments)
    two = trained(tmp_path / "two", build, optimizer_fn, 2, update, **arguments)
    assert_close(one, two, tolerance)
    return two


# --- models and optimizers --------------------------------------------------------------------------------------------


def dense(x, size, name="dense"):
    kernel = tf.get_variable(f"{name}/kernel", [x.shape[-1].value, size], initializer=tf.glorot_uniform_initializer(1))
    return tf.matmul(x, kernel) + tf.get_variable(f"{name}/bias", [size], initializer=tf.zeros_initializer())


def cross_entropy(logits, labels):
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def plain(x, labels):
    return cross_entropy(dense(tf.tanh(dense(x, 4)), 5, "logits"), labels)


def embedding(x, labels):
    """Sparse gradients, with rows that come twice in a batch and rows that never do."""
    table = tf.get_variable("table", [9, 6], initializer=tf.random_uniform_initializer(seed=2))
    return tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, labels) - x))


def sparse_and_dense(x, labels):
    table = tf.get_variable("table", [9, 6], initializer=tf.random_uniform_initializer(seed=2))
    weights = tf.gather(table, labels) * tf.reduce_mean(table)
    return tf.reduce_mean(tf.square(weights - x)) + 0.1 * tf.nn.l2_loss(table)


def partitioned(x, labels):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", [6, 5], initializer=tf.ones_initializer())
    return cross_entropy(tf.matmul(x, w), labels)


def dynamic_rnn(x, labels):
    cell = tf.nn.rnn_cell.LSTMCell(4, initializer=tf.glorot_uniform_initializer(seed=1))
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(x, [-1, 3, 2]), dtype=tf.float32)
    return cross_entropy(dense(outputs[:, -1], 5), labels)


def keras_lstm(x, labels):
    start = [tf.keras.initializers.glorot_uniform(seed=seed) for seed in (1, 2)]
    layer = tf.keras.layers.LSTM(4, kernel_initializer=start[0], recurrent_initializer=start[1])
    return cross_entropy(dense(layer(tf.reshape(x, [-1, 3, 2])), 5), labels)


def in_cond(x, labels):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [6, 5], initializer=tf.ones_initializer())
    logits = tf.cond(tf.equal(step % 2, 0), lambda: tf.matmul(x, w), lambda: tf.matmul(x, 2 * w))
    return cross_entropy(logits, labels)


OPTIMIZERS = {
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.05),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.9, centered=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
}


@pytest.mark.parametrize(
    ("build", "update"),
    rotated([embedding, sparse_and_dense, partitioned, dynamic_rnn, keras_lstm, in_cond], SHARED_AND_COPIED),
)
def test_models(build, update, tmp_path):
    assert_same_as_one_tower(tmp_path, build, OPTIMIZERS["momentum"], update)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "update"), rotated([name for name in OPTIMIZERS if name != "momentum"], SHARED_AND_COPIED)
)
def test_optimizers(optimizer, update, tmp_path):
    both = lambda x, labels: plain(x, labels) + embedding(x, labels)  # noqa: E731
    assert_same_as_one_tower(tmp_path, both, OPTIMIZERS[optimizer], update)


@pytest.mark.parametrize("update", SHARED_AND_COPIED)
def test_sparse_gradients_equal_dense_ones(update, tmp_path):
    def of_matrix(x, labels):
        table = tf.get_variable("table", [9, 6], initializer=tf.random_uniform_initializer(seed=2))
        return tf.reduce_mean(tf.square(tf.matmul(tf.one_hot(labels, 9), table) - x))

    sparse = trained(tmp_path / "sparse", embedding, OPTIMIZERS["sgd"], 2, update)
    assert_close(sparse, trained(tmp_path / "dense", of_matrix, OPTIMIZERS["sgd"], 2, update))


# --- flags ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "update"), rotated(["norm", "global_norm", "value"], SHARED_AND_COPIED))
def test_the_mean_is_clipped_not_the_parts(kind, update, tmp_path):
    mox.set_flag("gradient_clip_type", kind)
    mox.set_flag("gradient_clip", 0.01)
    assert_same_as_one_tower(tmp_path, plain, OPTIMIZERS["momentum"], update)


@pytest.mark.slow
@pytest.mark.parametrize("update", SHARED_AND_COPIED)
@pytest.mark.parametrize("scale", [1024.0, "dynamic"])
def test_loss_scale(scale, update, tmp_path):
    plain_weights = trained(tmp_path / "plain", plain, OPTIMIZERS["adam"])
    mox.set_flag("loss_scale", scale)
    scaled = trained(tmp_path / "two", plain, OPTIMIZERS["adam"], 2, update)
    own = {name: scaled.pop(name) for name in list(scaled) if name.startswith("moxing/loss_scale")}
    assert bool(own) == (scale == "dynamic")
    assert_close(plain_weights, scaled)


@pytest.mark.slow
@pytest.mark.parametrize("update", UPDATES)
def test_an_overflow_on_one_tower_changes_nothing_but_the_scale(update, tmp_path):
    mox.set_flag("loss_scale", "dynamic")

    def overflowing(x, labels):
        # The value is ordinary and the slope infinite, where row 5 is in the batch: on the second tower.
        slope = tf.where(tf.reduce_any(tf.equal(x[:, 0], ROWS[5, 0])), np.inf, 1.0)
        same = tf.custom_gradient(lambda loss: (loss, lambda gradient: gradient * slope))
        return same(plain(x, labels))

    start = checkpoint_at_start(tmp_path, overflowing, update)
    after = checkpoint(tmp_path)
    assert after["global_step"] == 1
    assert after["moxing/loss_scale/value"] == 2.0**14
    for name in ("dense/kernel", "logits/bias", "dense/kernel/Momentum"):
        np.testing.assert_array_equal(after[name], start[name])


def checkpoint_at_start(directory, build, update):
    trained(directory, build, OPTIMIZERS["momentum"], 2, update, steps=1)
    reader = tf.train.load_checkpoint(str(directory / "model.ckpt-0"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.slow
@pytest.mark.parametrize("update", SHARED_AND_COPIED)
@pytest.mark.parametrize("var_dtype", ["fp32", "fp16"])
def test_half_precision(var_dtype, update, tmp_path):
    mox.set_flag("use_fp16", True)
    mox.set_flag("var_dtype", var_dtype)
    mox.set_flag("exact_fp16", True)
    mox.set_flag("loss_scale", 128.0)

    def half(x, labels):
        x = tf.cast(x, tf.float16)
        w = tf.get_variable("w", [6, 5], tf.float16, initializer=tf.ones_initializer())
        return cross_entropy(tf.cast(tf.matmul(x, w), tf.float32), labels)

    two = assert_same_as_one_tower(tmp_path, half, OPTIMIZERS["sgd"], update, tolerance=5e-3)
    assert two["w"].dtype == {"fp32": np.float32, "fp16": np.float16}[var_dtype]


@pytest.mark.slow
@pytest.mark.parametrize("update", SHARED_AND_COPIED)
def test_frozen_variables_stay_and_have_no_slots(update, tmp_path):
    mox.set_flag("trainable_exclude_patterns", "logits")
    two = assert_same_as_one_tower(tmp_path, plain, OPTIMIZERS["momentum"], update)
    assert "dense/bias/Momentum" in two
    assert "logits/bias/Momentum" not in two


# --- several losses ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("update", UPDATES)
def test_two_losses_with_scopes_of_their_own(update, tmp_path):
    """As in a GAN: all gradients come before any update, and each loss trains its scope."""

    def gan(x, labels):
        with tf.variable_scope("generator"):
            made = dense(x, 6)
        with tf.variable_scope("discriminator"):
            real = dense(x, 1)
        with tf.variable_scope("discriminator", reuse=True):
            fake = dense(made, 1)
        losses = [tf.reduce_mean(tf.nn.softplus(fake) + tf.nn.softplus(-real)), tf.reduce_mean(tf.nn.softplus(-fake))]
        return mox.ModelSpec(
            loss=losses,
            var_scopes=[["discriminator"], ["generator"]],
            log_info={"d": losses[0], "g": losses[1]},
        )

    optimizers = [OPTIMIZERS["momentum"], OPTIMIZERS["adam"]]
    two = assert_same_as_one_tower(tmp_path, gan, optimizers, update)
    assert {"discriminator/dense/kernel/Momentum", "generator/dense/kernel/Adam_1"} < set(two)
    assert "generator/dense/kernel/Momentum" not in two


# --- what is not trained ----------------------------------------------------------------------------------------------


def first_batches(steps=STEPS, batch=4, towers=2):
    """What the first tower saw."""
    return [ROWS[start : start + batch] for start in range(0, steps * batch * towers, batch * towers)]


def keras_norm(x):
    return tf.keras.layers.BatchNormalization(momentum=0.9)(x, training=True)


def layers_norm(x):
    return tf.layers.batch_normalization(x, momentum=0.9, training=True)


def norm_with_updates_of_the_script(x):
    x = layers_norm(x)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return tf.identity(x)


@pytest.mark.parametrize(
    ("norm", "update"), rotated([keras_norm, layers_norm, norm_with_updates_of_the_script], SHARED_AND_COPIED)
)
def test_moving_averages_are_those_of_the_first_tower(norm, update, tmp_path):
    values = trained(tmp_path, lambda x, labels: cross_entropy(dense(norm(x), 5), labels), OPTIMIZERS["sgd"], 2, update)
    (mean,) = [value for name, value in values.items() if name.endswith("moving_mean")]
    (variance,) = [value for name, value in values.items() if name.endswith("moving_variance")]
    expected_mean, expected_variance = np.zeros(6), np.ones(6)
    for batch in first_batches():
        expected_mean = 0.9 * expected_mean + 0.1 * batch.mean(0)
        expected_variance = 0.9 * expected_variance + 0.1 * batch.var(0)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-5)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-5)


@pytest.mark.parametrize("update", UPDATES)
def test_all_towers_read_what_the_first_one_updates(update, tmp_path):
    """A variable that is not trained is one for all towers, copies or not."""

    def counting(x, labels):
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer(), trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0))
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        return w * tf.stop_gradient(count)

    values = trained(tmp_path, counting, OPTIMIZERS["sgd"], 2, update, steps=16)
    assert values["count"] == 16
    # A tower may read the count before its step's update or after it. One that never saw it move would halve the slope.
    assert -0.1 * sum(range(1, 17)) - 1e-4 <= values["w"] <= -0.1 * sum(range(16)) + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("update", UPDATES)
def test_a_learning_rate_that_is_a_variable_counts_on_all_towers(update, tmp_path):
    def optimizer_fn():
        rate = tf.Variable(0.1, trainable=False, name="rate")
        step = tf.train.get_or_create_global_step()
        return tf.train.MomentumOptimizer(rate * 0.5 ** tf.cast(step, tf.float32), 0.9)

    two = assert_same_as_one_tower(tmp_path, plain, optimizer_fn, update)
    assert two["rate"] == np.float32(0.1)


@pytest.mark.parametrize("update", UPDATES)
def test_a_loss_of_other_variables_on_the_second_tower(update, tmp_path):
    calls = []

    def fickle(x, labels):
        calls.append(1)
        w, v = (tf.get_variable(name, [2]) for name in "wv")
        return tf.nn.l2_loss(w if len(calls) == 1 else v)

    message = r"The loss of tower 1 and that of tower 0 .* only one of them depends on (w, v|v, w)\."
    with pytest.raises(ValueError, match=message):
        trained(tmp_path, fickle, OPTIMIZERS["sgd"], 2, update)


# --- the graph --------------------------------------------------------------------------------------------------------


def build(strategy, optimizer_fn=OPTIMIZERS["adam"]):
    """A training operation of one variable on every tower."""
    step = tf.train.get_or_create_global_step()
    towers = []
    for index in range(strategy.num_towers):
        with strategy.tower_scope(index):
            loss = tf.nn.l2_loss(tf.get_variable("w", [3]) - float(index)) + embedding(
                tf.constant(ROWS[:4]), tf.constant(LABELS[:4])
            )
            towers.append(Tower([loss], [None]))
    return strategy.train_op(TrainSetup(towers, [optimizer_fn], [], step)).op


def device_of(operation):
    """Its device; TensorFlow spells the same one in two ways."""
    return operation.device.replace("/device:", "/").lower()


def test_nccl_reduces_on_gpus():
    with run_graph(tf.Graph()) as graph:
        build(Replicated(["/gpu:0", "/gpu:1"]))
        reductions = [op for op in graph.get_operations() if op.type == "NcclAllReduce"]
        # The table's gradient is sparse, and stays so.
        assert [device_of(op) for op in reductions] == ["/gpu:0", "/gpu:1"]
        assert {op.get_attr("num_devices") for op in reductions} == {2}
        assert len({op.get_attr("shared_name") for op in reductions}) == 1
        variables = {op.name: device_of(op) for op in graph.get_operations() if op.type == "VarHandleOp"}
        assert {variables["w"], variables["w/Adam"]} == {"/gpu:0"}
        copies = {name: device for name, device in variables.items() if device == "/gpu:1"}
        assert len(copies) == 8  # w, the table, two slots of each, and the two powers of Adam


def test_the_mean_is_taken_without_nccl_on_cpus_and_for_copies_on_the_host():
    with run_graph(tf.Graph()) as graph:
        build(Replicated(["/cpu:0", "/cpu:1"]))
        assert not [op for op in graph.get_operations() if op.type == "NcclAllReduce"]
    with run_graph(tf.Graph()) as graph:
        build(Replicated(["/gpu:0", "/gpu:1"], on_host=True))
        assert {
            op.device for op in graph.get_operations() if op.type == "VarHandleOp" and op.name != "global_step"
        } == {"/cpu:0"}


def test_an_optimizer_whose_variables_are_not_known():
    class Own:
        def compute_gradients(self, loss, var_list, **kwargs):
            return [
                (gradient, variable) for gradient, variable in zip(tf.gradients(loss, var_list), var_list, strict=True)
            ]

        def apply_gradients(self, pairs, global_step=None):
            return tf.no_op()

    with run_graph(tf.Graph()), pytest.raises(NotImplementedError, match="must be a tf.train.Optimizer"):
        build(Replicated(["/cpu:0", "/cpu:1"]), Own)
