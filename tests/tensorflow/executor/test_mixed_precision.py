"""Half precision in whole runs: by flag, by `mox.var_scope`, in the zoo."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_slim as slim
from half_precision_runs import (
    cross_entropy,
    images_and_labels,
    product_types,
)

import moxing.tensorflow as mox
from moxing.tensorflow.nets.parts import precision

tf.keras.layers  # noqa: B018  (imported now, so that every test finds the same state)


@pytest.fixture(autouse=True)
def first_warning():
    """Every test is told once what is told once in a process."""
    precision._warn_once.cache_clear()
    yield
    precision._warn_once.cache_clear()


class Seen(tf.train.SessionRunHook):
    """Looks at the graph as it is trained."""

    def begin(self):
        self.types = product_types()
        self.variables = {variable.op.name: variable.dtype.base_dtype for variable in tf.trainable_variables()}
        self.everything = {variable.op.name: variable.dtype.base_dtype for variable in tf.global_variables()}


def train(build, steps=20, rate=0.05, **arguments):
    """The losses of a run, step by step, and what it was built of; `build(images, labels)` gives the loss."""
    seen, losses = Seen(), []

    class Losses(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs(tf.get_collection("the_loss")[0])

        def after_run(self, context, values):
            losses.append(float(values.results))

    def model_fn(inputs, mode):
        loss = build(*inputs)
        tf.add_to_collection("the_loss", tf.cast(loss, tf.float32))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss}, hooks=[seen, Losses()])

    settings = {"input_fn": images_and_labels, "batch_size": 12, "max_number_of_steps": steps, **arguments}
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        mox.run(model_fn=model_fn, run_mode="TRAIN", optimizer_fn=mox.get_optimizer_fn("momentum", rate), **settings)
    return losses, seen


# --- --use_fp16 -------------------------------------------------------------------------------------------------------


def dense_layers(x, labels):
    x = tf.layers.dense(tf.layers.flatten(x), 16, tf.nn.relu)
    return cross_entropy(tf.layers.dense(x, 4), labels)


def conv_layers(x, labels):
    x = tf.layers.conv2d(x, 8, 3, activation=tf.nn.relu)
    x = tf.layers.batch_normalization(x, training=True)
    return cross_entropy(tf.layers.dense(tf.layers.flatten(x), 4), labels)


def own_variables(x, labels):
    x = tf.nn.relu(tf.nn.conv2d(x, tf.get_variable("kernel", [3, 3, 3, 8]), 2, "SAME"))
    x = tf.reshape(x, [-1, 4 * 4 * 8])
    return cross_entropy(tf.matmul(x, tf.get_variable("weights", [128, 4])), labels)


def keras_layers(x, labels):
    x = tf.keras.layers.Conv2D(8, 3, activation="relu")(x)
    x = tf.keras.layers.BatchNormalization()(x, training=True)
    x = tf.keras.layers.DepthwiseConv2D(3)(x)
    x = tf.keras.layers.Conv2DTranspose(4, 3, strides=2)(x)
    return cross_entropy(tf.keras.layers.Dense(4)(tf.keras.layers.Flatten()(x)), labels)


def slim_layers(x, labels):
    with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, weights_regularizer=slim.l2_regularizer(1e-4)):
        x = slim.separable_conv2d(slim.conv2d(x, 8, 3), 8, 3, depth_multiplier=1)
    loss = cross_entropy(slim.fully_connected(slim.flatten(x), 4, activation_fn=None), labels)
    return loss + tf.add_n(mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))


def lstm(x, labels):
    cell = tf.nn.rnn_cell.LSTMCell(8)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(x, [-1, 8, 24]), dtype=tf.float32)
    return cross_entropy(tf.layers.dense(outputs[:, -1], 4), labels)


def keras_lstm(x, labels):
    x = tf.keras.layers.LSTM(8)(tf.reshape(x, [-1, 8, 24]))
    return cross_entropy(tf.keras.layers.Dense(4)(x), labels)


def while_loop(x, labels):
    kernel = tf.get_variable("kernel", [24, 24])
    x = tf.reshape(x, [-1, 8, 24])[:, 0]
    _, x = tf.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, kernel))), [0, x])
    return cross_entropy(tf.layers.dense(x, 4), labels)


def cond(x, labels):
    kernel, x = tf.get_variable("kernel", [192, 4]), tf.layers.flatten(x)
    even = tf.equal(tf.train.get_or_create_global_step() % 2, 0)
    return cross_entropy(tf.cond(even, lambda: tf.matmul(x, kernel), lambda: tf.matmul(x, kernel) * 0.9), labels)


def attention(x, labels):
    x = tf.reshape(x, [-1, 8, 24])
    x = tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True)), x)
    return cross_entropy(tf.layers.dense(tf.layers.flatten(x), 4), labels)


def zoo(x, labels):
    logits, _ = mox.get_model_fn("resnet_v1_20", "TRAIN", 4, weight_decay=1e-4)(tf.image.resize_images(x, [16, 16]))
    return cross_entropy(logits, labels) + tf.add_n(mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))


MODELS = [dense_layers, conv_layers, own_variables, keras_layers, slim_layers, lstm, keras_lstm, while_loop, cond,
          attention, zoo]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("build", MODELS)
def test_a_model_trains_in_half_precision_as_in_float32(build):
    steps = 8 if build is zoo else 20
    exact, before = train(build, steps, rate=0.01)
    mox.set_flag("use_fp16", True)
    mox.set_flag("exact_fp16", True)
    mox.set_flag("loss_scale", "dynamic")
    half, seen = train(build, steps, rate=0.01)
    assert before.types == {tf.float32}
    # Everything, the products of the gradients too.
    assert seen.types == {tf.float16}
    assert set(seen.variables.values()) == {tf.float32}
    assert seen.variables == before.variables
    assert half != exact
    np.testing.assert_allclose(half[:3], exact[:3], rtol=0.01)
    # Batch normalisation of small batches makes much of a rounding; an epoch, 4 batches, evens it out.
    np.testing.assert_allclose(np.mean(half[-4:]), np.mean(exact[-4:]), rtol=0.1, atol=0.05)
    assert np.mean(half[-4:]) < np.mean(half[:4]) - 0.005


@pytest.mark.slow
def test_where_nothing_accelerates_it_float32_is_used_and_said_once(caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    exact, _ = train(conv_layers, 3)
    mox.set_flag("use_fp16", True)
    same, seen = train(conv_layers, 3)
    train(zoo, 1)
    assert seen.types == {tf.float32}
    assert same == exact
    (line,) = [record.getMessage() for record in caplog.records]
    assert "--use_fp16" in line
    assert "float32" in line
    assert "--exact_fp16=True" in line


def test_exact_fp16_alone_changes_nothing(caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    mox.set_flag("exact_fp16", True)
    _, seen = train(conv_layers, 1)
    assert seen.types == {tf.float32}
    assert not caplog.records


@pytest.mark.slow
def test_loss_and_gradients_around_the_model_are_float32():
    """What the optimizer adds is not the model's."""
    mox.set_flag("use_fp16", True)
    mox.set_flag("exact_fp16", True)
    found = {}

    class Multiplying(tf.train.GradientDescentOptimizer):
        def apply_gradients(self, pairs, global_step=None, name=None):
            pairs = list(pairs)
            found["gradients"] = {gradient.dtype for gradient, _ in pairs}
            found["product"] = tf.matmul(tf.ones([2, 2]), tf.ones([2, 2])).op.type
            return super().apply_gradients(pairs, global_step, name)

    with tf.Graph().as_default():
        mox.run(
            input_fn=images_and_labels,
            model_fn=lambda inputs, mode: mox.ModelSpec(loss=conv_layers(*inputs)),
            optimizer_fn=lambda: Multiplying(0.1),
            run_mode="TRAIN",
            batch_size=4,
            max_number_of_steps=1,
        )
    assert found == {"gradients": {tf.float32}, "product": "MatMul"}


def test_an_error_in_model_fn_leaves_tensorflow_as_it_was():
    mox.set_flag("use_fp16", True)
    mox.set_flag("exact_fp16", True)

    def failing(x, labels):
        tf.matmul(tf.layers.flatten(x), tf.zeros([192, 2]))
        raise ZeroDivisionError("in the model")

    create = tf.Graph._create_op_internal
    with pytest.raises(ZeroDivisionError, match="in the model"):
        train(failing)
    assert tf.Graph._create_op_internal is create


# --- --var_dtype ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [dense_layers, conv_layers, own_variables, slim_layers, lstm, zoo])
def test_variables_stored_in_half_precision(build):
    """Statistics of batch normalisation are not: they are assigned to, and a small step of theirs would be lost."""
    mox.set_flag("var_dtype", "fp16")
    losses, seen = train(build, 8, rate=0.01)
    assert set(seen.variables.values()) == {tf.float16}
    assert seen.types == {tf.float32}
    moving = {dtype for name, dtype in seen.everything.items() if "moving_" in name}
    assert moving <= {tf.float32}
    assert bool(moving) == (build in (conv_layers, slim_layers, zoo))
    assert sum(losses[-4:]) < sum(losses[:4])


def test_variables_stored_in_float32():
    """A model in half precision all through, with its own convolution."""

    def build(x, labels):
        kernel = tf.get_variable("kernel", [3, 3, 3, 8], tf.float16, regularizer=lambda w: 1e-4 * tf.nn.l2_loss(w))
        x = tf.nn.relu(tf.nn.conv2d(tf.cast(x, tf.float16), kernel, 2, "SAME"))
        logits = tf.matmul(tf.reshape(x, [-1, 128]), tf.get_variable("weights", [128, 4], tf.float16))
        loss = cross_entropy(logits, labels)
        assert loss.dtype == tf.float16
        return loss + tf.add_n(mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))

    _, seen = train(build, 1)
    assert set(seen.variables.values()) == {tf.float16}
    mox.set_flag("var_dtype", "fp32")
    mox.set_flag("loss_scale", 1024)
    losses, seen = train(build)
    assert set(seen.variables.values()) == {tf.float32}
    assert seen.types == {tf.float16}
    assert losses[-1] < losses[0] - 0.05


def test_a_run_goes_on_with_variables_of_another_type(tmp_path):
    def variables():
        reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
        types = reader.get_variable_to_dtype_map()
        return {name: (types[name], reader.get_tensor(name)) for name in types}

    train(dense_layers, 3, log_dir=str(tmp_path))
    first = variables()
    mox.set_flag("var_dtype", "fp16")
    train(dense_layers, 4, log_dir=str(tmp_path))
    second = variables()
    assert {name: dtype for name, (dtype, _) in second.items()} == {
        name: tf.int64 if name == "global_step" else tf.float16 for name in first
    }
    assert second["global_step"][1] == 4
    kernel = "dense/kernel"
    np.testing.assert_allclose(first[kernel][1], second[kernel][1], atol=0.05)
    mox.set_flag("var_dtype", None)
    train(dense_layers, 5, log_dir=str(tmp_path))
    assert variables()[kernel][0] == tf.float32
    np.testing.assert_allclose(second[kernel][1], variables()[kernel][1], atol=0.05)


# --- the manual's programs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
def test_section_4_8_with_a_small_network(exact):
    mox.set_flag("exact_fp16", exact)
    with tf.Graph().as_default() as graph:
        images = tf.random_normal(shape=[1, 32, 32, 3], dtype=tf.float32)
        images = tf.cast(images, tf.float16)
        resnet = mox.get_model_fn(name=mox.NetworkKeys.RESNET_V1_18, run_mode=mox.ModeKeys.TRAIN, num_classes=1000,
                                  data_format="NCHW", batch_norm_fused=True)  # fmt: skip
        with mox.var_scope(force_dtype=tf.float32):
            logits, _ = resnet(images)
        assert logits.dtype == tf.float16
        assert {variable.dtype.base_dtype for variable in tf.global_variables()} == {tf.float32}
        assert product_types(graph) == {tf.float16 if exact else tf.float32}
