"""Optimizers run on given gradients, and what NumPy makes of the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.wrappers.factory import get_optimizer_wrapper_fn

STEPS = 20
# TensorFlow makes 32-bit numbers of the arguments. These have so few digits that nothing is lost by it.
RATE, BETA1, BETA2, EPSILON = 0.125, 0.875, 1 - 2**-10, 2**-16

_random = np.random.RandomState(7)
#: A matrix, a vector, and what stands for the weights of an embedding; in 64 bits, so that 1e-6 means something.
FIRST = {
    "kernel": _random.randn(4, 3),
    "bias": _random.randn(3),
    "rows": _random.randn(6, 2),
}
GRADIENTS = [{name: _random.randn(*value.shape) for name, value in FIRST.items()} for _ in range(STEPS)]

State = dict[str, Any]
Update = Callable[[np.ndarray, np.ndarray, State, str], np.ndarray]


class Trained:
    """A graph with an optimizer on variables like `FIRST`, whose gradients are fed.

    Args:
      optimizer_fn: makes the optimizer.
      sparse: names of variables whose gradients are `tf.IndexedSlices`, with every row named, some of them twice.
      partitions: the variables are in so many slices.
      dtype: of the variables.
    """

    def __init__(self, optimizer_fn, sparse=(), partitions=None, dtype=tf.float64):
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.variable_scope("net", use_resource=True):
            partitioner = tf.fixed_size_partitioner(partitions) if partitions else None
            self.variables, pairs, self._feeds = {}, [], {}
            for name, value in FIRST.items():
                own = partitioner if value.shape[0] % (partitions or 1) == 0 else None
                variable = tf.get_variable(name, value.shape, dtype, _initializer(value), partitioner=own)
                self.variables[name] = variable
                self._feeds[name] = fed = tf.placeholder(dtype, value.shape)
                slices = list(variable) if own else [variable]
                for part, gradient in zip(slices, tf.split(fed, len(slices)), strict=True):
                    pairs.append((_sparse(gradient) if name in sparse else gradient, part))
        with self.graph.as_default():
            self.optimizer = optimizer_fn()
            self.step = tf.train.get_or_create_global_step()
            self.train = self.optimizer.apply_gradients(pairs, global_step=self.step)
            self.pairs = pairs
            self.initializer = tf.global_variables_initializer()
            self.saver = tf.train.Saver()
            self._values = {name: tf.convert_to_tensor(variable) for name, variable in self.variables.items()}
        self.session = tf.Session(graph=self.graph)
        self.session.run(self.initializer)

    def run(self, steps=STEPS, first=0):
        """Does steps `first` to `steps` and returns the values of the variables."""
        for number in range(first, steps):
            self.session.run(self.train, {fed: GRADIENTS[number][name] for name, fed in self._feeds.items()})
        return self.values()

    def values(self):
        return self.session.run(self._values)

    def state(self):
        """The values of the optimizer's variables by name."""
        with self.graph.as_default():
            return self.session.run({variable.op.name: variable for variable in self.optimizer.variables()})

    def save(self, directory):
        """Writes a checkpoint and returns its path."""
        with self.graph.as_default():
            return self.saver.save(self.session, str(directory / "model"))

    def restore(self, path):
        with self.graph.as_default():
            self.saver.restore(self.session, path)
        return self


def _initializer(value):
    def part(shape, dtype=None, partition_info=None):
        begin = partition_info.var_offset[0] if partition_info else 0
        return tf.constant(value[begin : begin + shape[0]], dtype)

    return part


def _sparse(gradient):
    """The same gradient by rows; the first one in two halves."""
    rows = tf.range(tf.shape(gradient)[0])
    values = tf.concat([gradient[:1] / 2, gradient[:1] / 2, gradient[1:]], 0)
    return tf.IndexedSlices(values, tf.concat([[0], rows], 0), tf.shape(gradient))


def computed(update: Update, gradients=None, first=None) -> dict[str, np.ndarray]:
    """The weights after the gradients: `update(weights, gradient, state, name)` returns the new ones."""
    weights = {name: np.array(value) for name, value in (first or FIRST).items()}
    states: dict[str, State] = {name: {} for name in weights}
    for number, each in enumerate(GRADIENTS if gradients is None else gradients):
        for name in weights:
            states[name]["t"] = number + 1
            weights[name] = update(weights[name], each[name], states[name], name)
    return weights


def momentum(rate=0.125, factor=0.875, nesterov=False) -> Update:
    def update(w, g, state, name):
        state["a"] = factor * state.get("a", 0.0) + g
        return w - rate * (g + factor * state["a"] if nesterov else state["a"])

    return update


def close(values, expected, rtol=1e-6):
    assert values.keys() == expected.keys()
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=rtol, atol=1e-9, err_msg=name)
        assert np.abs(value - FIRST[name]).max() > 1e-3, f"{name} did not move"


def inner():
    return tf.train.MomentumOptimizer(0.125, 0.875)


def wrapped(name, opt=inner, **arguments):
    return get_optimizer_wrapper_fn(name, opt, **arguments)


def lars(ratio, decay, update):
    def adapted(w, g, state, name):
        if w.ndim > 1:
            length, slope = np.linalg.norm(w), np.linalg.norm(g)
            g = ratio * length / (slope + decay * length) * (g + decay * w)
        return update(w, g, state, name)

    return adapted


def means(count, gradients=GRADIENTS):
    """Of every `count` gradients, the last ones included if they are fewer."""
    groups = [gradients[begin : begin + count] for begin in range(0, len(gradients), count)]
    return [{name: np.mean([one[name] for one in group], 0) for name in FIRST} for group in groups]


def moments(g, state, b1, b2):
    state["m"] = b1 * state.get("m", 0.0) + (1 - b1) * g
    state["v"] = b2 * state.get("v", 0.0) + (1 - b2) * g * g


def adamw(rate=RATE, decay=0.05, b1=0.8, b2=0.99, epsilon=1e-4, exclude=()):
    def update(w, g, state, name):
        moments(g, state, b1, b2)
        m, v = state["m"] / (1 - b1 ** state["t"]), state["v"] / (1 - b2 ** state["t"])
        return w - rate * (0.0 if name in exclude else decay) * w - rate * m / (np.sqrt(v) + epsilon)

    return update


def nadam(w, g, state, name, rate=RATE, b1=0.8, b2=0.99, epsilon=1e-4):
    moments(g, state, b1, b2)
    t = state["t"]
    ahead = b1 * state["m"] / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1**t)
    return w - rate * ahead / (np.sqrt(state["v"] / (1 - b2**t)) + epsilon)


def lamb(exclude=(), rate=RATE / 2, decay=0.05, b1=0.8, b2=0.99, epsilon=1e-4):
    def update(w, g, state, name):
        moments(g, state, b1, b2)
        u = state["m"] / (1 - b1 ** state["t"]) / (np.sqrt(state["v"] / (1 - b2 ** state["t"])) + epsilon)
        if name in exclude:
            return w - rate * u
        u = u + decay * w
        return w - rate * np.linalg.norm(w) / np.linalg.norm(u) * u

    return update


OURS = {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}
