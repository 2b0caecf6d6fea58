"""Every optimizer of `get_optimizer_fn` against NumPy; adamw, lamb, nadam with sparse gradients and slices too."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import STEPS, Trained, close, computed, momentum

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.factory import OptimizerKeys, get_optimizer_fn

# --- what the optimizers compute --------------------------------------------------------------------------------------


# TensorFlow makes 32-bit numbers of the arguments. These have so few digits that nothing is lost by it.
RATE, BETA1, BETA2, EPSILON = 0.125, 0.875, 1 - 2**-10, 2**-16


def sgd(w, g, state, name):
    return w - RATE * g


def adam(rate=RATE, b1=BETA1, b2=BETA2, epsilon=EPSILON):
    def update(w, g, state, name):
        _moments(g, state, b1, b2)
        t = state["t"]
        # TensorFlow keeps the powers in 32 bits.
        p1, p2 = _power(b1, t), _power(b2, t)
        return w - rate * np.sqrt(1 - p2) / (1 - p1) * state["m"] / (np.sqrt(state["v"]) + epsilon)

    return update


def _power(base, count):
    result = factor = np.float32(base)
    for _ in range(count - 1):
        result = np.float32(result * factor)
    return float(result)


def _moments(g, state, b1, b2):
    state["m"] = b1 * state.get("m", 0.0) + (1 - b1) * g
    state["v"] = b2 * state.get("v", 0.0) + (1 - b2) * g * g


def adadelta(w, g, state, name, rate=1.0, rho=0.9375, epsilon=2**-10):
    state["a"] = rho * state.get("a", 0.0) + (1 - rho) * g * g
    step = np.sqrt(state.get("d", 0.0) + epsilon) / np.sqrt(state["a"] + epsilon) * g
    state["d"] = rho * state.get("d", 0.0) + (1 - rho) * step * step
    return w - rate * step


def adagrad(w, g, state, name):
    state["a"] = state.get("a", 0.25) + g * g
    return w - RATE * g / np.sqrt(state["a"])


def rmsprop(w, g, state, name, rate=2**-6, decay=0.875, factor=0.5, epsilon=2**-20):
    state["s"] = decay * state.get("s", 1.0) + (1 - decay) * g * g
    state["a"] = factor * state.get("a", 0.0) + rate * g / np.sqrt(state["s"] + epsilon)
    return w - state["a"]


def ftrl(w, g, state, name, rate=RATE, l1=2**-6, l2=2**-5):
    before = state.get("n", 0.25)
    state["n"] = before + g * g
    sigma = (np.sqrt(state["n"]) - np.sqrt(before)) / rate
    state["z"] = state.get("z", 0.0) + g - sigma * w
    quadratic = np.sqrt(state["n"]) / rate + 2 * l2
    return (np.clip(state["z"], -l1, l1) - state["z"]) / quadratic


def adamw(rate=RATE, decay=0.05, b1=0.8, b2=0.99, epsilon=1e-4, exclude=()):
    def update(w, g, state, name):
        _moments(g, state, b1, b2)
        m, v = state["m"] / (1 - b1 ** state["t"]), state["v"] / (1 - b2 ** state["t"])
        return w - rate * (0.0 if name in exclude else decay) * w - rate * m / (np.sqrt(v) + epsilon)

    return update


def nadam(w, g, state, name, rate=RATE, b1=0.8, b2=0.99, epsilon=1e-4):
    _moments(g, state, b1, b2)
    t = state["t"]
    ahead = b1 * state["m"] / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1**t)
    return w - rate * ahead / (np.sqrt(state["v"] / (1 - b2**t)) + epsilon)


def lamb(exclude=(), rate=RATE / 2, decay=0.05, b1=0.8, b2=0.99, epsilon=1e-4):
    def update(w, g, state, name):
        _moments(g, state, b1, b2)
        u = state["m"] / (1 - b1 ** state["t"]) / (np.sqrt(state["v"] / (1 - b2 ** state["t"])) + epsilon)
        if name in exclude:
            return w - rate * u
        u = u + decay * w
        return w - rate * np.linalg.norm(w) / np.linalg.norm(u) * u

    return update


OURS = {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}
CASES = [
    ("sgd", RATE, {}, sgd),
    ("momentum", RATE, {}, momentum(factor=float(np.float32(0.9)))),
    ("momentum", RATE, {"momentum": 0.75, "use_nesterov": True}, momentum(factor=0.75, nesterov=True)),
    ("adam", RATE, {"beta1": BETA1, "beta2": BETA2, "epsilon": EPSILON}, adam()),
    ("adam", RATE, {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.5}, adam(b1=0.5, b2=0.75, epsilon=0.5)),
    ("adadelta", 1.0, {"rho": 0.9375, "epsilon": 2**-10}, adadelta),
    ("adagrad", RATE, {"initial_accumulator_value": 0.25}, adagrad),
    ("rmsprop", 2**-6, {"decay": 0.875, "momentum": 0.5, "epsilon": 2**-20}, rmsprop),
    (
        "ftrl",
        RATE,
        {
            "initial_accumulator_value": 0.25,
            "l1_regularization_strength": 2**-6,
            "l2_regularization_strength": 2**-5,
        },
        ftrl,
    ),
    ("adamw", RATE, {"weight_decay": 0.05, **OURS}, adamw()),
    ("adamw", RATE, {"weight_decay": 0.05, "exclude": ["bias"], **OURS}, adamw(exclude=["bias"])),
    ("adamw", RATE, {"weight_decay": 0.0, **OURS}, adamw(decay=0.0)),
    ("nadam", RATE, OURS, nadam),
    ("lamb", RATE / 2, {"weight_decay": 0.05, **OURS}, lamb()),
    ("lamb", RATE / 2, {"weight_decay": 0.05, "exclude": ["net/bias$"], **OURS}, lamb(exclude=["bias"])),
]


@pytest.mark.parametrize(("name", "rate", "arguments", "update"), CASES)
def test_twenty_steps_equal_numpy(name, rate, arguments, update):
    trained = Trained(get_optimizer_fn(name, rate, **arguments))
    close(trained.run(), computed(update))
    assert trained.session.run(trained.step) == STEPS


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


def test_lamb_with_norms_of_zero():
    with tf.Graph().as_default(), tf.Session() as session:
        zero = tf.get_variable("zero", [2], initializer=tf.zeros_initializer(), use_resource=True)
        still = tf.get_variable("still", [2], initializer=tf.ones_initializer(), use_resource=True)
        optimizer = get_optimizer_fn("lamb", 0.1, weight_decay=0.0)()
        train = optimizer.apply_gradients([(tf.constant([1.0, -1.0]), zero), (tf.zeros([2]), still)])
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(zero), [-0.1, 0.1], rtol=1e-4)
        assert session.run(still).tolist() == [1, 1]


# --- the arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(OptimizerKeys))
def test_all_names_and_ways_to_write_them(name):
    with tf.Graph().as_default():
        one = get_optimizer_fn(name, 0.1)()
        other = get_optimizer_fn(name.value.upper(), learning_rate=lambda: tf.constant(0.1))()
    assert isinstance(one, tf.train.Optimizer) and type(one) is type(other)
    assert type(one).compute_gradients is tf.train.Optimizer.compute_gradients


def test_the_keyword_arguments_of_tensorflow_are_accepted():
    """Every one of them; `name` is the optimizer's own here."""
    for key in OptimizerKeys:
        with tf.Graph().as_default():
            made = type(get_optimizer_fn(key, 0.1)())
            for parameter in inspect.signature(made).parameters.values():
                if parameter.default is not parameter.empty and parameter.name not in ("name", "learning_rate"):
                    get_optimizer_fn(key, 0.1, **{parameter.name: parameter.default})()


def test_a_positional_argument():
    assert get_optimizer_fn("momentum", 0.1, None, 0.5)()._momentum == 0.5


def test_scope():
    with tf.Graph().as_default():
        w = tf.get_variable("w", [2], use_resource=True)
        for scope in ("generator", "discriminator"):
            operation = get_optimizer_fn("adam", 0.1, scope)().minimize(tf.reduce_sum(w))
            assert operation.name.startswith(f"{scope}/Adam")
        names = {variable.op.name for variable in tf.global_variables()}
    assert {"generator/beta1_power", "discriminator/beta1_power", "w/Adam", "w/Adam_1", "w/Adam_2"} <= names


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: get_optimizer_fn("adan", 0.1), ValueError, r"name='adan'\): expected one of .*Did you mean 'adam'\?"),
        (lambda: get_optimizer_fn("sgd", 0.1, momentum=0.9), TypeError, r"get_optimizer_fn\('sgd', ...\): .*momentum"),
        (lambda: get_optimizer_fn("sgd", 0.1, "/")(), ValueError, r"scope='/'"),
        (lambda: get_optimizer_fn("adamw", 0.1, weight_decay=-1)(), ValueError, r"AdamW\(weight_decay=-1\)"),
        (lambda: get_optimizer_fn("lamb", 0.1, beta1=1.0)(), ValueError, r"LAMB\(beta1=1.0\): expected.*below 1"),
        (lambda: get_optimizer_fn("sgd", "0.1"), TypeError, r"learning_rate='0.1'\): expected a number"),
        (lambda: get_optimizer_fn("adamw", 0.1, exclude=["("])(), ValueError, r"exclude=\['\('\]\): expected regular"),
        (lambda: get_optimizer_fn("lamb", 0.1, exclude="bias")(), ValueError, r"exclude='bias'\): expected a list"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_variable_that_is_no_resource():
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=False):
        w = tf.get_variable("w", [2])
        with pytest.raises(TypeError, match="AdamW: w is not a resource variable"):
            get_optimizer_fn("adamw", 0.1)().minimize(tf.reduce_sum(w))


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
