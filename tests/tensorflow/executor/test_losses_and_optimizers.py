"""Several losses, gradient clipping, loss scales, patterns, and the optimizers by name."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from line_problem import sgd
from small_runs import numbers, run, saved, scalar

import moxing.tensorflow as mox

# The functions of tf.layers and the cells of tf.nn.rnn_cell say that they are deprecated.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.tf\.layers\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.tf\.nn\.rnn_cell\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.layer\.(add_variable|apply). is deprecated:UserWarning"),
]

tf.keras.layers  # noqa: B018  (imported now, so that every test finds the same state)


def test_several_losses_against_numpy(tmp_path):
    """All gradients come from the old values; then momentum for one scope, plain descent for the other."""

    def model_fn(inputs, mode):
        x = tf.cast(inputs[0][0], tf.float32)
        with tf.variable_scope("generator"):
            g = tf.get_variable("g", initializer=0.5)
        with tf.variable_scope("discriminator"):
            d = tf.get_variable("d", initializer=-1.0)
            e = tf.get_variable("e", initializer=2.0)
        losses = [tf.square(g * d + x), tf.square(d * g - e * x)]
        return mox.ModelSpec(
            loss=losses,
            var_scopes=[["generator"], ["discriminator"]],
            log_info={"first": losses[0], "second": losses[1]},
        )

    optimizers = [lambda: tf.train.MomentumOptimizer(0.05, 0.9), sgd(0.02)]
    result = run(model_fn=model_fn, optimizer_fn=optimizers, log_dir=tmp_path, batch_size=1, max_number_of_steps=6,
                 input_fn=numbers(3, repeat=True))  # fmt: skip
    g, d, e, velocity = 0.5, -1.0, 2.0, 0.0
    for step in range(6):
        x = step % 3
        gradients = (2 * (g * d + x) * d, 2 * (d * g - e * x) * g, 2 * (d * g - e * x) * -x)
        velocity = 0.9 * velocity + gradients[0]
        g, d, e = g - 0.05 * velocity, d - 0.02 * gradients[1], e - 0.02 * gradients[2]
    weights = saved(tmp_path)
    assert result.global_step == weights["global_step"] == 6
    found = [weights["generator/g"], weights["discriminator/d"], weights["discriminator/e"]]
    np.testing.assert_allclose(found, [g, d, e], rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_several_losses_over_the_same_variables(optimizer, tmp_path):
    def model_fn(inputs, mode):
        w = tf.get_variable("w", initializer=3.0)
        return mox.ModelSpec(loss=[w * 2.0, w * 1.0])

    functions = [mox.get_optimizer_fn(optimizer, 0.1), mox.get_optimizer_fn(optimizer, 0.1)]
    assert run(model_fn=model_fn, optimizer_fn=functions, log_dir=tmp_path).global_step == 3
    assert saved(tmp_path)["w"] < 3.0


def test_several_losses_with_nested_scopes(tmp_path):
    def model_fn(inputs, mode):
        with tf.variable_scope("a"):
            x = tf.get_variable("x", initializer=0.0)
            with tf.variable_scope("b"):
                y = tf.get_variable("y", initializer=0.0)
        with tf.variable_scope("ab"):
            z = tf.get_variable("z", initializer=0.0)
        total = x + y + z
        return mox.ModelSpec(loss=[total, total], var_scopes=[["a/b", "ab"], ["a"]])

    run(model_fn=model_fn, optimizer_fn=[sgd(1.0), sgd(10.0)], log_dir=tmp_path, max_number_of_steps=1)
    weights = saved(tmp_path)
    assert (weights["a/x"], weights["a/b/y"], weights["ab/z"]) == (-10, -11, -1)


def test_one_loss_with_var_scopes(tmp_path):
    def model_fn(inputs, mode):
        with tf.variable_scope("a"):
            x = tf.get_variable("x", initializer=0.0)
        y = tf.get_variable("y", initializer=0.0)
        return mox.ModelSpec(loss=x + y, var_scopes=["a"])

    run(model_fn=model_fn, log_dir=tmp_path)
    assert (saved(tmp_path)["a/x"], saved(tmp_path)["y"]) == (-3, 0)


def clip_model(inputs, mode):
    a = tf.get_variable("a", initializer=[0.0, 0.0])
    b = tf.get_variable("b", initializer=0.0)
    return mox.ModelSpec(loss=tf.reduce_sum(a * [3.0, -4.0]) + 12.0 * b)


@pytest.mark.parametrize(
    ("kind", "bound", "a", "b"),
    [
        ("norm", 1.0, [0.6, -0.8], 1.0),
        ("norm", 100.0, [3.0, -4.0], 12.0),
        ("norm", 6.0, [3.0, -4.0], 6.0),
        ("global_norm", 1.3, [0.3, -0.4], 1.2),
        ("global_norm", 13.0, [3.0, -4.0], 12.0),
        ("value", 3.5, [3.0, -3.5], 3.5),
    ],
)
@pytest.mark.parametrize("scale", [1, 128])
def test_gradient_clip_against_numpy(kind, bound, a, b, scale, tmp_path):
    mox.set_flag("gradient_clip_type", kind)
    mox.set_flag("gradient_clip", bound)
    mox.set_flag("loss_scale", scale)
    run(model_fn=clip_model, log_dir=tmp_path, max_number_of_steps=2)
    weights = saved(tmp_path)
    np.testing.assert_allclose(weights["a"], -2 * np.array(a), rtol=1e-5)
    np.testing.assert_allclose(weights["b"], -2 * b, rtol=1e-5)


@pytest.mark.parametrize("kind", ["norm", "global_norm", "value"])
def test_gradient_clip_of_an_embedding(kind, tmp_path):
    """Rows 1 and 2 have the gradient 3 and 4; sparse gradients are clipped as dense ones."""

    def model_fn(inputs, mode):
        table = tf.get_variable("table", shape=[4], initializer=tf.zeros_initializer())
        return mox.ModelSpec(loss=tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2]) * [3.0, 4.0]))

    mox.set_flag("gradient_clip_type", kind)
    mox.set_flag("gradient_clip", 2.5)
    run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1)
    expected = [0, -2.5, -2.5, 0] if kind == "value" else [0, -1.5, -2, 0]
    np.testing.assert_allclose(saved(tmp_path)["table"], expected, rtol=1e-6)


@pytest.mark.parametrize(("scale", "expected"), [(1, 0.0), (1024, -1.0)])
def test_loss_scale_saves_small_half_precision_gradients(scale, expected, tmp_path):
    def model_fn(inputs, mode):
        w = tf.get_variable("w", initializer=0.0)
        half = tf.cast(w, tf.float16) * tf.constant(1e-4, tf.float16) * tf.constant(1e-4, tf.float16)
        return mox.ModelSpec(loss=half)

    mox.set_flag("loss_scale", scale)
    run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1, optimizer_fn=sgd(1e8))
    assert saved(tmp_path)["w"] == pytest.approx(expected, rel=0.02)


def test_loss_scale_of_an_embedding_and_the_printed_loss(tmp_path):
    def model_fn(inputs, mode):
        table = tf.get_variable("table", shape=[4], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 1, 3]))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    mox.set_flag("loss_scale", 64)
    result = run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1, optimizer_fn=sgd(0.5))
    assert result.log_info["loss"] == 3.0
    np.testing.assert_allclose(saved(tmp_path)["table"], [1, 0, 1, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("include", "exclude", "moved"),
    [
        ("conv", None, {"net/conv1/w", "net/conv2/w"}),
        (None, "conv", {"net/fc/w", "fc_head"}),
        ("conv,fc", "conv1", {"net/conv2/w", "net/fc/w", "fc_head"}),
        ("^fc", None, {"fc_head"}),
        ("conv[2-9]/w$", None, {"net/conv2/w"}),
        (None, " fc , conv2 ", {"net/conv1/w"}),
        ("", "", {"net/conv1/w", "net/conv2/w", "net/fc/w", "fc_head"}),
    ],
)
def test_trainable_patterns(include, exclude, moved, tmp_path):
    names = ["net/conv1/w", "net/conv2/w", "net/fc/w", "fc_head"]

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=tf.add_n([scalar(name) for name in names]))

    mox.set_flag("trainable_include_patterns", include)
    mox.set_flag("trainable_exclude_patterns", exclude)
    run(model_fn=model_fn, log_dir=tmp_path)
    weights = saved(tmp_path)
    assert {name for name in names if weights[name] != 0} == moved


OPTIMIZERS = {
    "adadelta": (lambda rate: tf.train.AdadeltaOptimizer(rate, rho=0.9), {"rho": 0.9}),
    "adagrad": (lambda rate: tf.train.AdagradOptimizer(rate, 0.2), {"initial_accumulator_value": 0.2}),
    "adam": (lambda rate: tf.train.AdamOptimizer(rate, beta1=0.5), {"beta1": 0.5}),
    "ftrl": (lambda rate: tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.01),
             {"l1_regularization_strength": 0.01}),
    "momentum": (lambda rate: tf.train.MomentumOptimizer(rate, 0.8, use_nesterov=True),
                 {"momentum": 0.8, "use_nesterov": True}),
    "rmsprop": (lambda rate: tf.train.RMSPropOptimizer(rate, momentum=0.5), {"momentum": 0.5}),
    "sgd": (lambda rate: tf.train.GradientDescentOptimizer(rate), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_equal_tensorflow_s_own(name, tmp_path):
    make, arguments = OPTIMIZERS[name]
    target = np.array([1.0, -2.0, 0.5], np.float32)

    def loss_of(w, x):
        return tf.reduce_sum(tf.square(w - target * x))

    def model_fn(inputs, mode):
        w = tf.get_variable("w", initializer=tf.ones([3]))
        return mox.ModelSpec(loss=loss_of(w, tf.cast(inputs[0][0], tf.float32)))

    run(model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn(name, 0.1, **arguments), log_dir=tmp_path, batch_size=1,
        max_number_of_steps=7)  # fmt: skip
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        w = tf.get_variable("w", initializer=tf.ones([3]), use_resource=True)
        train = make(0.1).minimize(loss_of(w, x))
        session.run(tf.global_variables_initializer())
        for step in range(7):
            session.run(train, {x: step % 8})
        expected = {variable.op.name: session.run(variable) for variable in tf.global_variables()}
    weights = saved(tmp_path)
    assert set(weights) == {*expected, "global_step"}
    for variable, value in expected.items():
        np.testing.assert_allclose(weights[variable], value, rtol=1e-6, err_msg=variable)


def test_optimizer_keys_and_their_strings():
    ours = ["adamw", "lamb", "nadam"]
    assert sorted(key.value for key in mox.OptimizerKeys) == sorted([*OPTIMIZERS, *ours])
    with tf.Graph().as_default():
        for key in mox.OptimizerKeys:
            assert type(mox.get_optimizer_fn(key, 0.1)()) is type(mox.get_optimizer_fn(key.value.upper(), 0.1)())


def test_optimizer_learning_rate_as_a_function_and_positional_arguments():
    def rate():
        return 1.0 / (1.0 + tf.cast(tf.train.get_or_create_global_step(), tf.float32))

    result = run(optimizer_fn=mox.get_optimizer_fn("sgd", rate), max_number_of_steps=4)
    assert result.log_info["w"] == pytest.approx(-(1 + 1 / 2 + 1 / 3))
    momentum = run(optimizer_fn=mox.get_optimizer_fn("momentum", 1.0, None, 0.5), max_number_of_steps=3)
    assert momentum.log_info["w"] == pytest.approx(-(1 + 1.5))


@pytest.mark.slow
def test_optimizer_scope_names_what_belongs_to_no_weight(tmp_path):
    run(optimizer_fn=mox.get_optimizer_fn("adam", 0.1, scope="my_scope"), log_dir=tmp_path / "a")
    run(optimizer_fn=mox.get_optimizer_fn("adam", 0.1), log_dir=tmp_path / "b")
    scoped, plain = set(saved(tmp_path / "a")), set(saved(tmp_path / "b"))
    assert scoped - plain == {"my_scope/beta1_power", "my_scope/beta2_power"}
    assert plain - scoped == {"beta1_power", "beta2_power"}


def test_a_learning_rate_tensor_and_keras_losses_in_collections(tmp_path):
    def model_fn(inputs, mode):
        x = tf.cast(tf.reshape(inputs[0], [-1, 1]), tf.float32)
        layer = tf.keras.layers.Dense(1, kernel_regularizer=tf.keras.regularizers.l2(0.1))
        loss = tf.reduce_mean(tf.square(layer(x) - 2 * x)) + tf.add_n(layer.losses)
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    first = run(model_fn=model_fn, optimizer_fn=sgd(0.01), max_number_of_steps=1).log_info["loss"]
    assert np.isfinite(first)
