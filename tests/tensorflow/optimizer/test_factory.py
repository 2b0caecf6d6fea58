"""TensorFlow's optimizers against NumPy; names and arguments of `get_optimizer_fn`; optimizers of scripts."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import BETA1, BETA2, EPSILON, RATE, STEPS, Trained, close, computed, moments, momentum

from moxing.tensorflow.optimizer import factory
from moxing.tensorflow.optimizer.factory import OptimizerKeys, get_optimizer_fn, register_optimizer

# --- what the optimizers compute --------------------------------------------------------------------------------------


def sgd(w, g, state, name):
    return w - RATE * g


def adam(rate=RATE, b1=BETA1, b2=BETA2, epsilon=EPSILON):
    def update(w, g, state, name):
        moments(g, state, b1, b2)
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
]


@pytest.mark.parametrize(("name", "rate", "arguments", "update"), CASES)
def test_twenty_steps_equal_numpy(name, rate, arguments, update):
    trained = Trained(get_optimizer_fn(name, rate, **arguments))
    close(trained.run(), computed(update))
    assert trained.session.run(trained.step) == STEPS


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


def test_a_registered_optimizer(monkeypatch):
    monkeypatch.setattr(factory, "_registered", {})

    @register_optimizer("half_sgd")
    def half_sgd(learning_rate, divisor=2.0):
        return tf.train.GradientDescentOptimizer(learning_rate / divisor)

    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=3.0, use_resource=True)
        train = get_optimizer_fn("Half_SGD", lambda: tf.constant(1.0), divisor=4.0)().minimize(w)
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(w) == 2.75
    with pytest.raises(ValueError, match="expected one of adadelta, .*, half_sgd. Did you mean 'half_sgd'"):
        get_optimizer_fn("half_sg", 0.1)
    with pytest.raises(
        TypeError, match=r"get_optimizer_fn\('half_sgd', ...\): .*the optimizer takes learning_rate, div"
    ):
        get_optimizer_fn("half_sgd", 0.1, factor=2)


@pytest.mark.parametrize(
    ("name", "message"), [("adam", "MoXing has an optimizer of this"), ("Adam", "lower"), ("", "lo")]
)
def test_names_that_cannot_be_registered(name, message):
    with pytest.raises(ValueError, match=message):
        register_optimizer(name)
