"""Learning-rate schedules by epoch or by step."""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.util.lr_strategy import check_counts, parse_stages, rate_at
from moxing.framework.util.number_checks import is_number


def piecewise_lr(lr_strategy: str | float, num_samples: int, global_batch_size: int) -> tf.Tensor:
    """A learning rate in stages, from the global step.

    `"10:0.1,20:0.01"` is 0.1 until epoch 10, then 0.01. `"5:0.1->0.4,90:0.4=>0.001"` rises linearly from 0.1 to 0.4
    in the first five epochs and falls exponentially to 0.001 until epoch 90. After the last stage its end value
    persists. A number alone is a constant rate. The epoch is `global_step * global_batch_size / num_samples`.
    `moxing lr` draws the curve.

    Args:
      lr_strategy: the stages.
      num_samples: samples in an epoch.
      global_batch_size: samples in a step, over all devices and (synchronous) workers.

    Returns:
      A float32 scalar.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     rate = piecewise_lr('10:0.5,20:0.25', num_samples=100, global_batch_size=50)
      ...     session.run(tf.train.get_global_step().initializer)
      ...     float(session.run(rate))
      0.5
    """
    stages = parse_stages(lr_strategy)
    check_counts(num_samples, global_batch_size)
    step = tf.cast(tf.train.get_or_create_global_step(), tf.float64)
    rate = rate_at(stages, step, num_samples, global_batch_size, tf)
    return tf.cast(rate, tf.float32, name="learning_rate")


def linear_cosine_decay(
    max_lr: float,
    min_lr: float,
    global_step: Any,
    max_step: int,
    warmup_ratio: float = 0.1,
    decay_end_ratio: float = 1.0,
) -> tf.Tensor:
    """A linear warm-up, then a cosine decay multiplied by a linear one.

    From step 0 to `warmup_ratio * max_step` the rate rises linearly from `min_lr` to `max_lr`. From there to
    `decay_end_ratio * max_step`, with p going from 0 to 1, it is
    `min_lr + (max_lr - min_lr) * (1 - p) * (1 + cos(pi * p)) / 2`, and then it stays at `min_lr`. (The shape is that of
    Bello et al., Neural optimizer search, 2017; the original's own formula was never published.)

    Args:
      max_lr: the highest rate.
      min_lr: the first and the last rate.
      global_step: the step: a variable, a tensor or a number; None: the global step of the graph.
      max_step: number of steps of the training.
      warmup_ratio: fraction of the training that is the warm-up.
      decay_end_ratio: fraction of the training after which the rate is `min_lr`.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     [round(float(session.run(linear_cosine_decay(1.0, 0.0, step, 100))), 3) for step in (0, 10, 55, 100)]
      [0.0, 1.0, 0.25, 0.0]
    """
    schedule = _Schedule("linear_cosine_decay", max_lr, min_lr, max_step, warmup_ratio, decay_end_ratio)
    return schedule.rate(global_step, lambda left: left * _half_cosine(left))


def polynomial_decay(
    max_lr: float,
    min_lr: float,
    global_step: Any,
    max_step: int,
    warmup_ratio: float = 0.1,
    decay_end_ratio: float = 1.0,
    power: float = 2.0,
) -> tf.Tensor:
    """A warm-up, then a polynomial: `min_lr + (max_lr - min_lr) * (1 - p) ** power`.

    The arguments are those of `linear_cosine_decay`, and `power`: 2 is common for large batches with LARS, 1 is linear.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     [round(float(session.run(polynomial_decay(1.0, 0.0, step, 100))), 3) for step in (0, 10, 55, 100)]
      [0.0, 1.0, 0.25, 0.0]
    """
    _check_positive("polynomial_decay", "power", power)
    schedule = _Schedule("polynomial_decay", max_lr, min_lr, max_step, warmup_ratio, decay_end_ratio)
    return schedule.rate(global_step, lambda left: left**power)


def cosine_with_warmup(
    max_lr: float, min_lr: float, global_step: Any, max_step: int, warmup_ratio: float = 0.1
) -> tf.Tensor:
    """A linear warm-up from `min_lr` to `max_lr`, then half a cosine down to `min_lr` at `max_step`.

    The arguments are those of `linear_cosine_decay`. After Loshchilov, Hutter, SGDR, 2016, without restarts.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     [round(float(session.run(cosine_with_warmup(1.0, 0.0, step, 100))), 3) for step in (0, 10, 55, 100)]
      [0.0, 1.0, 0.5, 0.0]
    """
    return _Schedule("cosine_with_warmup", max_lr, min_lr, max_step, warmup_ratio, 1.0).rate(global_step, _half_cosine)


def one_cycle(
    max_lr: float,
    global_step: Any,
    max_step: int,
    warmup_ratio: float = 0.3,
    start_divisor: float = 25.0,
    end_divisor: float = 1e4,
) -> tf.Tensor:
    """A cosine up and a cosine down, to far below the first rate.

    After Smith, Topin, Super-convergence, 2017, with the cosine form in common use. The rate starts at
    `max_lr / start_divisor`, is `max_lr` at `warmup_ratio * max_step`, and ends at `max_step` with the first rate
    divided by `end_divisor`.

    Args:
      max_lr: the highest rate.
      global_step: the step: a variable, a tensor or a number; None: the global step of the graph.
      max_step: number of steps of the training.
      warmup_ratio: fraction of the training in which the rate rises.
      start_divisor: highest rate divided by the first rate.
      end_divisor: first rate divided by the last rate.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     [round(float(session.run(one_cycle(1.0, step, 100))), 3) for step in (0, 15, 30, 65, 100)]
      [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    for argument, value in (("start_divisor", start_divisor), ("end_divisor", end_divisor)):
        _check_positive("one_cycle", argument, value)
    start = max_lr / start_divisor
    schedule = _Schedule("one_cycle", max_lr, start / end_divisor, max_step, warmup_ratio, 1.0)
    return schedule.rate(global_step, _half_cosine, start, _half_cosine)


class _Schedule:
    """A schedule that rises and then falls; checks its arguments."""

    def __init__(
        self, function: str, max_lr: float, min_lr: float, max_step: int, warmup_ratio: float, decay_end_ratio: float
    ) -> None:
        for argument, value in (("max_lr", max_lr), ("max_step", max_step)):
            _check_positive(function, argument, value)
        if not is_number(min_lr) or not 0 <= min_lr <= max_lr:
            raise ValueError(f"{function}(min_lr={min_lr!r}): expected a number from 0 to max_lr={max_lr!r}.")
        if not is_number(warmup_ratio) or not 0 <= warmup_ratio < 1:
            raise ValueError(f"{function}(warmup_ratio={warmup_ratio!r}): expected a number from 0 to below 1.")
        if not is_number(decay_end_ratio) or not warmup_ratio < decay_end_ratio <= 1:
            raise ValueError(
                f"{function}(decay_end_ratio={decay_end_ratio!r}): expected a number above "
                f"warmup_ratio={warmup_ratio!r}, up to 1."
            )
        self._max, self._min = float(max_lr), float(min_lr)
        self._top, self._end = warmup_ratio * max_step, decay_end_ratio * max_step

    def rate(self, global_step: Any, down: Any, start: float | None = None, up: Any = lambda done: done) -> tf.Tensor:
        """Returns the rate.

        Args:
          global_step: the step.
          down: shape of the decay: a function of the fraction that is left, from 1 to 0.
          start: the first rate; None: the last one.
          up: shape of the warm-up: a function of the fraction that is done, from 0 to 1.
        """
        first = self._min if start is None else start
        step = tf.train.get_or_create_global_step() if global_step is None else global_step
        step = tf.cast(step, tf.float64)
        # Without a warm-up this value is not used.
        done = tf.clip_by_value(step / max(self._top, 1e-9), 0.0, 1.0)
        left = tf.clip_by_value((self._end - step) / (self._end - self._top), 0.0, 1.0)
        rising = first + (self._max - first) * up(done)
        falling = self._min + (self._max - self._min) * down(left)
        return tf.cast(tf.where(step < self._top, rising, falling), tf.float32, name="learning_rate")


def _half_cosine(left: tf.Tensor) -> tf.Tensor:
    """Half a cosine: 0 for 0, 1 for 1, flat at both ends."""
    return (1.0 - tf.cos(math.pi * left)) / 2.0


def _check_positive(function: str, argument: str, value: Any) -> None:
    if not is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{function}({argument}={value!r}): expected a positive number.")
