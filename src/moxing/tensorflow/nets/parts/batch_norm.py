"""Batch normalisation and batch renormalisation, with the fused kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf


@dataclass(frozen=True)
class BatchNorm:
    """The settings of a network's batch normalisation.

    Attributes:
      decay: decay rate of the moving averages.
      epsilon: added to the variance.
      scale: true if there is a `gamma`.
      center: true if there is a `beta`.
      zero_gamma: true if `gamma` is initialised with zeros instead of ones.
    """

    decay: float = 0.997
    epsilon: float = 1e-5
    scale: bool = True
    center: bool = True
    zero_gamma: bool = False


def normalise(
    x: tf.Tensor, constants: BatchNorm, training: bool, data_format: str, fused: bool, renorm: bool
) -> tf.Tensor:
    """Normalises `x` over all axes but the channels; the variables are created in the current scope.

    The statistics and the variables are float32, whatever the type of `x`. In training the moving averages are
    updated by operations in `UPDATE_OPS`.

    Args:
      x: [batch, height, width, depth] or, by `data_format`, [batch, depth, height, width].
      constants: the settings of the network.
      training: true to normalise with the mean and variance of the batch.
      data_format: `NHWC` or `NCHW`.
      fused: true if the moving variance is the mean of the unbiased variances (n - 1 in the denominator), as in
        TensorFlow's fused kernel; false: of the biased ones. Both are computed by the fused kernel.
      renorm: true for batch renormalisation, see `_renormalised`.

    Example:
      >>> with tf.Graph().as_default():
      ...     y = normalise(tf.zeros([2, 4, 4, 3]), BatchNorm(scale=False), True, 'NHWC', False, False)
      ...     [variable.op.name for variable in tf.global_variables()], len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
      (['beta', 'moving_mean', 'moving_variance'], 2)
    """
    variables = _variables(int(x.shape.as_list()[1 if data_format == "NCHW" else 3]), constants)
    kernel = partial(tf.nn.fused_batch_norm, epsilon=constants.epsilon, data_format=data_format)
    gamma, beta = variables.gamma, variables.beta
    if not training:
        mean, variance = (tf.cast(moving, tf.float32) for moving in (variables.moving_mean, variables.moving_variance))
        return kernel(x, gamma, beta, mean, variance, is_training=False)[0]
    if renorm:
        y, mean, variance = _renormalised(x, variables, constants, data_format)
    else:
        y, mean, variance = kernel(x, gamma, beta, is_training=True)
    if not fused:
        variance = variance * _biased(x, variables.depth)
    for moving, now in ((variables.moving_mean, mean), (variables.moving_variance, variance)):
        update = moving.assign_sub((moving - tf.cast(now, moving.dtype)) * (1 - constants.decay), read_value=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    return y


def _renormalised(
    x: tf.Tensor, variables: _Variables, constants: BatchNorm, data_format: str
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Ioffe, "Batch renormalization": the batch's mean and deviation are corrected towards the moving ones.

    y = (x - mean) / deviation * r + d, with r = deviation / moving deviation and d = (mean - moving mean) / moving
    deviation taken as constants, r in [1 / most_r, most_r], d in [-most_d, most_d]. As in the paper's experiments
    most_r is 1 for 5,000 steps and grows to 3 at step 40,000, most_d is 0 and grows to 5 at step 25,000: the first
    steps, in which the moving averages are not meaningful yet, are plain batch normalisation.
    """
    gamma, beta, depth = variables.gamma, variables.beta, variables.depth
    ones, zeros = tf.ones_like(gamma), tf.zeros_like(gamma)
    y, mean, variance = tf.nn.fused_batch_norm(
        x, ones, zeros, epsilon=constants.epsilon, data_format=data_format, is_training=True
    )
    most_r, most_d = _bounds()
    # The kernel divides by the biased variance, and returns the unbiased one.
    deviation = tf.sqrt(variance * _biased(x, depth) + constants.epsilon)
    moving_deviation = tf.sqrt(tf.cast(variables.moving_variance, tf.float32) + constants.epsilon)
    r = tf.clip_by_value(deviation / moving_deviation, 1 / most_r, most_r)
    d = tf.clip_by_value((mean - tf.cast(variables.moving_mean, tf.float32)) / moving_deviation, -most_d, most_d)
    r, d = tf.stop_gradient(r), tf.stop_gradient(d)
    shape = [1, -1, 1, 1] if data_format == "NCHW" else [1, 1, 1, -1]
    factor, offset = (tf.cast(tf.reshape(value, shape), x.dtype) for value in (r * gamma, d * gamma + beta))
    return y * factor + offset, mean, variance


def _bounds() -> tuple[Any, Any]:
    global_step = tf.train.get_global_step()
    if global_step is None:
        return 3.0, 5.0
    step = tf.cast(global_step, tf.float32)

    def ramp(start: float, end: float) -> tf.Tensor:
        return tf.clip_by_value((step - start) / (end - start), 0.0, 1.0)

    return 1 + 2 * ramp(5_000, 40_000), 5 * ramp(5_000, 25_000)


def _biased(x: tf.Tensor, depth: int) -> Any:
    """Returns (n - 1) / n, which turns an unbiased variance over `x` into a biased one."""
    count = tf.cast(tf.size(x) // depth, tf.float32)
    return (count - 1) / count


@dataclass(frozen=True)
class _Variables:
    """The variables of one batch normalisation, each of length `depth`."""

    depth: int
    gamma: tf.Tensor
    beta: tf.Tensor
    moving_mean: Any
    moving_variance: Any


def _variables(depth: int, constants: BatchNorm) -> _Variables:
    gamma, beta = tf.ones([depth], tf.float32), tf.zeros([depth], tf.float32)
    if constants.scale:
        initializer = tf.zeros_initializer() if constants.zero_gamma else tf.ones_initializer()
        gamma = tf.get_variable("gamma", [depth], tf.float32, initializer=initializer)
    if constants.center:
        beta = tf.get_variable("beta", [depth], tf.float32, initializer=tf.zeros_initializer())
    moving_mean = _statistic("moving_mean", depth, tf.zeros_initializer())
    return _Variables(depth, gamma, beta, moving_mean, _statistic("moving_variance", depth, tf.ones_initializer()))


def _statistic(name: str, depth: int, initializer: Any) -> Any:
    got = tf.get_variable(name, [depth], tf.float32, initializer=initializer, trainable=False)
    if not isinstance(got, tf.Tensor):
        return got
    # mox.var_scope with another type than float32 returns a cast; only the variable itself can be assigned.
    full_name = f"{tf.get_variable_scope().name}/{name}".lstrip("/")
    return next(variable for variable in tf.global_variables() if variable.op.name == full_name)
