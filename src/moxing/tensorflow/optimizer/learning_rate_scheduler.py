"""Learning rates that follow the epoch."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

_FORM = 'expected "EPOCH:RATE,EPOCH:RATE,...", where RATE is a number, a->b (linear) or a=>b (exponential)'


def piecewise_lr(lr_strategy: str | float, num_samples: int, global_batch_size: int) -> tf.Tensor:
    """A learning rate in stages, read off the global step.

    `"10:0.1,20:0.01"` is 0.1 until epoch 10, then 0.01. `"5:0.1->0.4,90:0.4=>0.001"` rises linearly from 0.1 to 0.4
    in the first five epochs and falls exponentially to 0.001 until epoch 90. After the last stage its end value
    persists. A number alone is a constant rate. The epoch is `global_step * global_batch_size / num_samples`.

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
    stages = _parse(lr_strategy)
    for argument, value in (("num_samples", num_samples), ("global_batch_size", global_batch_size)):
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < math.inf:
            raise ValueError(f"piecewise_lr({argument}={value!r}): expected a positive number.")
    # float64: the step at which a stage ends is then exact, whatever the number of steps.
    step = tf.cast(tf.train.get_or_create_global_step(), tf.float64)
    epoch = step * float(global_batch_size) / float(num_samples)
    rate = tf.constant(stages[-1].last, tf.float64)
    for stage in reversed(stages):
        rate = tf.where(epoch < stage.end, stage.rate(epoch), rate)
    return tf.cast(rate, tf.float32, name="learning_rate")


@dataclass(frozen=True)
class _Stage:
    """The rate between two epochs, from `first` to `last`."""

    begin: float
    end: float
    first: float
    last: float
    exponential: bool

    def rate(self, epoch: tf.Tensor) -> tf.Tensor:
        # Outside the stage the value is thrown away, but must not overflow.
        progress = tf.clip_by_value((epoch - self.begin) / (self.end - self.begin), 0.0, 1.0)
        if self.exponential:
            return self.first * tf.pow(tf.constant(self.last / self.first, tf.float64), progress)
        return self.first + (self.last - self.first) * progress


def _parse(lr_strategy: Any) -> list[_Stage]:
    text = str(lr_strategy).strip()
    if ":" not in text and "," not in text:
        rate = _number(text, text)
        return [_Stage(0.0, math.inf, rate, rate, exponential=False)]
    stages: list[_Stage] = []
    for piece in text.split(","):
        epoch, colon, rates = piece.partition(":")
        if not colon:
            raise _malformed(piece, _FORM)
        begin = stages[-1].end if stages else 0.0
        end = _number(epoch, piece)
        if end <= begin:
            raise _malformed(piece, f"epochs must rise, and this stage would begin at epoch {begin:g}")
        stages.append(_Stage(begin, end, *_rates(rates, piece)))
    return stages


def _rates(text: str, piece: str) -> tuple[float, float, bool]:
    """First and last rate of a stage, and whether the way between them is exponential."""
    arrow = next((arrow for arrow in ("->", "=>") if arrow in text), None)
    if arrow is None:
        rate = _number(text, piece)
        return rate, rate, False
    first, last = (_number(part, piece) for part in text.split(arrow, 1))
    if arrow == "=>" and not (first > 0.0 and last > 0.0):
        raise _malformed(piece, "an exponential stage needs rates above 0")
    return first, last, arrow == "=>"


def _number(text: str, piece: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _malformed(piece, _FORM) from None
    if not 0.0 <= number < math.inf:
        raise _malformed(piece, "numbers must be finite and not negative")
    return number


def _malformed(piece: str, reason: str) -> ValueError:
    return ValueError(f"piecewise_lr(lr_strategy=...): wrong piece {piece!r}: {reason}.")
