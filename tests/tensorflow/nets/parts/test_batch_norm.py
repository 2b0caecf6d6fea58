"""Batch normalisation and renormalisation against the formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.nets.parts.batch_norm import BatchNorm, normalise

#: Two images of 2x3 pixels: twelve values a channel, so that 11 and 12 in a denominator differ by a lot.
IMAGES = np.random.default_rng(7).normal([[[[3.0, -1.0, 0.5]]]], [[[[2.0, 0.1, 5.0]]]], (2, 2, 3, 3)).astype("float32")
STATE = {
    "gamma": np.float32([0.5, 2.0, -1.0]),
    "beta": np.float32([1.0, 0.0, -3.0]),
    "moving_mean": np.float32([2.0, -1.1, 1.5]),
    "moving_variance": np.float32([3.0, 0.02, 20.0]),
}
CONSTANTS = BatchNorm(decay=0.9, epsilon=0.01)


def assign(session, values):
    """Gives the variables of the graph the values of that name; those of no value their initial one."""
    session.run(tf.global_variables_initializer())
    for variable in tf.global_variables():
        name = variable.op.name.rpartition("/")[2]
        if name in values:
            session.run(variable.assign(tf.cast(values[name], variable.dtype.base_dtype)))


def run(
    images=IMAGES, constants=CONSTANTS, training=True, fused=True, renorm=False, step=None, state=STATE, grads=False
):
    """Output, the variables after UPDATE_OPS and, if asked, the gradients of sum(y * weights)."""
    with tf.Graph().as_default(), tf.Session() as session:
        if step is not None:
            tf.train.get_or_create_global_step()
        x = tf.placeholder(images.dtype, images.shape)
        y = normalise(x, constants, training, "NHWC", fused, renorm)
        assert y.dtype == x.dtype
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        assign(session, {**state, "global_step": step})
        # Not of one sign: the gradient of a sum of normalised values is zero.
        loss = tf.reduce_sum(tf.cast(y, tf.float32) * LOSS_WEIGHTS)
        wanted = [x, *tf.trainable_variables()] if grads else []
        output, gradients = session.run([y, tf.gradients(loss, wanted) if grads else []], {x: images})
        session.run(updates, {x: images})
        after = session.run(variables)
        names = ["x", *(variable.op.name for variable in tf.trainable_variables())]
        return output, after, dict(zip(names, gradients, strict=False))


LOSS_WEIGHTS = np.random.default_rng(8).normal(size=IMAGES.shape).astype("float32")


def moments(ddof=0):
    return IMAGES.mean((0, 1, 2)), IMAGES.var((0, 1, 2), ddof=ddof)


def moved(name, towards):
    return STATE[name] * 0.9 + towards * 0.1


@pytest.mark.parametrize("fused", [True, False])
def test_training(fused):
    mean, variance = moments()
    expected = (IMAGES - mean) / np.sqrt(variance + 0.01) * STATE["gamma"] + STATE["beta"]
    output, after, _ = run(fused=fused)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after["moving_mean"], moved("moving_mean", mean), rtol=1e-5)
    moving_variance = moments(ddof=1 if fused else 0)[1]
    np.testing.assert_allclose(after["moving_variance"], moved("moving_variance", moving_variance), rtol=1e-5)
    np.testing.assert_array_equal(after["gamma"], STATE["gamma"])


@pytest.mark.parametrize("renorm", [True, False])
def test_inference_uses_the_averages_and_leaves_them(renorm):
    expected = (IMAGES - STATE["moving_mean"]) / np.sqrt(STATE["moving_variance"] + 0.01)
    output, after, _ = run(training=False, renorm=renorm)
    np.testing.assert_allclose(output, expected * STATE["gamma"] + STATE["beta"], rtol=1e-4, atol=1e-5)
    for name, value in STATE.items():
        np.testing.assert_array_equal(after[name], value)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("scale", "center"), [(False, True), (True, False), (False, False)])
def test_without_gamma_or_beta(scale, center, training):
    constants = BatchNorm(decay=0.9, epsilon=0.01, scale=scale, center=center)
    output, after, _ = run(constants=constants, training=training)
    assert set(after) == set(STATE) - {name for name, kept in (("gamma", scale), ("beta", center)) if not kept}
    mean, variance = moments() if training else (STATE["moving_mean"], STATE["moving_variance"])
    expected = (IMAGES - mean) / np.sqrt(variance + 0.01)
    expected = expected * (STATE["gamma"] if scale else 1) + (STATE["beta"] if center else 0)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


def test_variables_and_what_they_begin_with():
    with tf.Graph().as_default(), tf.Session() as session, tf.variable_scope("a"):
        normalise(tf.zeros([1, 2, 2, 4]), BatchNorm(zero_gamma=True), True, "NHWC", True, False)
        session.run(tf.global_variables_initializer())
        found = {variable.op.name: session.run(variable) for variable in tf.global_variables()}
        expected = {"a/gamma": 0, "a/beta": 0, "a/moving_mean": 0, "a/moving_variance": 1}
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], np.full(4, value))
        assert [variable.op.name for variable in tf.trainable_variables()] == ["a/gamma", "a/beta"]
    with tf.Graph().as_default(), tf.Session() as session:
        normalise(tf.zeros([1, 2, 2, 4]), BatchNorm(), True, "NHWC", True, False)
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(tf.trainable_variables()[0]), np.ones(4))


def test_gradients_are_those_of_the_formula():
    _, _, found = run(grads=True)
    with tf.Graph().as_default(), tf.Session() as session:
        x, gamma, beta = (tf.constant(value) for value in (IMAGES, STATE["gamma"], STATE["beta"]))
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        y = (x - mean) / tf.sqrt(variance + 0.01) * gamma + beta
        expected = session.run(tf.gradients(tf.reduce_sum(y * LOSS_WEIGHTS), [x, gamma, beta]))
    for name, value in zip(("x", "gamma", "beta"), expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("renorm", [True, False])
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_statistics_of_half_precision_are_float32(dtype, renorm):
    # 1000 + noise of 1: a variance computed in float16 would be far off, and one of bfloat16 lost.
    images = (IMAGES[..., :1] + 1000).astype(dtype.as_numpy_dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        y = normalise(tf.constant(images), CONSTANTS, True, "NHWC", True, renorm)
        assert y.dtype == dtype
        assert {variable.dtype.base_dtype for variable in tf.global_variables()} == {tf.float32}
        session.run(tf.global_variables_initializer())
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        _, _, mean, variance = session.run(tf.global_variables())
    exact = images.astype(np.float64)
    np.testing.assert_allclose(mean, [0.1 * exact.mean()], rtol=1e-5)
    np.testing.assert_allclose(variance, [0.9 + 0.1 * exact.var(ddof=1)], rtol=1e-3)


@pytest.mark.parametrize(("stored", "statistics"), [(tf.float16, tf.float32), (tf.float64, tf.float64)])
def test_variables_stored_in_another_type(stored, statistics):
    with tf.Graph().as_default(), tf.Session() as session, tf.variable_scope("outer"):
        with mox.var_scope(force_dtype=stored), tf.variable_scope("BatchNorm"):
            y = normalise(tf.constant(IMAGES), CONSTANTS, True, "NHWC", True, False)
        assert y.dtype == tf.float32
        gamma, beta, mean, variance = tf.global_variables()
        assert gamma.dtype.base_dtype == beta.dtype.base_dtype == stored
        # In half precision an average would stand still: 0.001 of a small difference is lost beside it.
        assert mean.dtype.base_dtype == variance.dtype.base_dtype == statistics
        session.run(tf.global_variables_initializer())
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        found = session.run([mean, variance])
    np.testing.assert_allclose(found[0], 0.1 * moments()[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], 0.9 + 0.1 * moments(ddof=1)[1], rtol=1e-5)


def test_updates_are_only_run_when_asked_for_and_not_twice():
    with tf.Graph().as_default(), tf.Session() as session:
        y = normalise(tf.constant(IMAGES), CONSTANTS, True, "NHWC", True, False)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        session.run(tf.global_variables_initializer())
        mean = tf.global_variables()[2]
        session.run(y)
        np.testing.assert_array_equal(session.run(mean), np.zeros(3))
        for times in (1, 2):
            session.run(updates)
            np.testing.assert_allclose(session.run(mean), moments()[0] * (1 - 0.9**times), rtol=1e-4)
    assert len(updates) == 2


def test_an_unknown_batch_size_is_counted_when_it_runs():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, None, 3])
        normalise(x, CONSTANTS, True, "NHWC", False, False)
        assign(session, STATE)
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS), {x: IMAGES})
        after = session.run(tf.global_variables()[3])
    np.testing.assert_allclose(after, moved("moving_variance", moments()[1]), rtol=1e-5)


# --- renormalisation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "most_r", "most_d"),
    [
        (0, 1.0, 0.0),
        (5_000, 1.0, 0.0),
        (15_000, 1 + 2 * 10 / 35, 2.5),
        (25_000, 1 + 2 * 20 / 35, 5.0),
        (40_000, 3.0, 5.0),
        (1_000_000, 3.0, 5.0),
        (None, 3.0, 5.0),
    ],
)
def test_renormalisation(step, most_r, most_d):
    # The averages are far from the batch in one channel and near in the others: r and d bounded and not.
    state = {**STATE, "moving_variance": np.float32([3.0, 0.0004, 20.0]), "moving_mean": np.float32([2.0, 0.5, 1.5])}
    output, after, _ = run(renorm=True, fused=False, step=step, state=state)
    mean, variance = moments()
    moving_deviation = np.sqrt(state["moving_variance"] + 0.01)
    r = np.clip(np.sqrt(variance + 0.01) / moving_deviation, 1 / most_r, most_r)
    d = np.clip((mean - state["moving_mean"]) / moving_deviation, -most_d, most_d)
    expected = ((IMAGES - mean) / np.sqrt(variance + 0.01) * r + d) * STATE["gamma"] + STATE["beta"]
    np.testing.assert_allclose(output, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(after["moving_mean"], state["moving_mean"] * 0.9 + mean * 0.1, rtol=1e-5)


@pytest.mark.parametrize("fused", [True, False])
def test_renormalisation_without_bounds_is_inference(fused):
    # The averages are near enough for no bound to hold at the end of the schedule.
    mean, variance = moments()
    state = {**STATE, "moving_mean": mean + np.float32(0.1), "moving_variance": variance * np.float32(1.2)}
    trained, _, _ = run(renorm=True, fused=fused, state=state)
    inferred, _, _ = run(training=False, state=state)
    np.testing.assert_allclose(trained, inferred, rtol=1e-3, atol=1e-4)


def test_renormalisation_before_the_schedule_is_batch_normalisation():
    renormalised, after, gradients = run(renorm=True, step=0, grads=True)
    plain, after_plain, plain_gradients = run(step=0, grads=True)
    np.testing.assert_allclose(renormalised, plain, rtol=1e-4, atol=1e-5)
    for name in after_plain:
        np.testing.assert_allclose(after[name], after_plain[name], rtol=1e-6)
    for name in plain_gradients:
        np.testing.assert_allclose(gradients[name], plain_gradients[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("step", [15_000, None])
def test_gradients_of_renormalisation_take_r_and_d_as_constants(step):
    _, _, found = run(renorm=True, fused=False, step=step, grads=True)
    most_r, most_d = (1 + 2 * 10 / 35, 2.5) if step else (3.0, 5.0)
    moving_deviation = np.sqrt(STATE["moving_variance"] + 0.01)
    batch_mean, batch_variance = moments()
    r = np.clip(np.sqrt(batch_variance + 0.01) / moving_deviation, 1 / most_r, most_r)
    d = np.clip((batch_mean - STATE["moving_mean"]) / moving_deviation, -most_d, most_d)
    with tf.Graph().as_default(), tf.Session() as session:
        x, gamma, beta = (tf.constant(value) for value in (IMAGES, STATE["gamma"], STATE["beta"]))
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        y = ((x - mean) / tf.sqrt(variance + 0.01) * np.float32(r) + np.float32(d)) * gamma + beta
        expected = session.run(tf.gradients(tf.reduce_sum(y * LOSS_WEIGHTS), [x, gamma, beta]))
    for name, value in zip(("x", "gamma", "beta"), expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("renorm", [True, False])
def test_channels_first_has_the_same_variables_and_shape(renorm):
    with tf.Graph().as_default():
        y = normalise(tf.zeros([2, 3, 4, 5]), CONSTANTS, True, "NCHW", False, renorm)
        assert y.shape == [2, 3, 4, 5]
        assert [variable.shape.as_list() for variable in tf.global_variables()] == [[3]] * 4
