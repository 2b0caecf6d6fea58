"""Learning rates in stages, such as "5:0.1->0.4,90:0.4=>0.001": parses, checks and computes them.

It is in `framework`, not beside the other schedules: importing anything of `moxing.tensorflow` imports TensorFlow, and
`moxing lr` must start at once. Training passes `tensorflow` as `library` and computes on tensors, `moxing lr` passes
`numpy` and computes on arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moxing.framework.util.number_checks import is_number

_FORM = 'expected "EPOCH:RATE,EPOCH:RATE,...", where RATE is a number, a->b (linear) or a=>b (exponential)'


@dataclass(frozen=True)
class Stage:
    """A stage of the learning rate.

    Attributes:
      begin: first epoch.
      end: epoch at which it ends; infinite for a constant rate.
      first: rate at the beginning.
      last: rate at the end.
      exponential: true if the rate changes exponentially, false if linearly.
    """

    begin: float
    end: float
    first: float
    last: float
    exponential: bool

    def rate(self, epoch: Any, library: Any) -> Any:
        """Returns the rate at an epoch; outside of the stage that of the nearer end.

        Args:
          epoch: a 64-bit tensor or array.
          library: `tensorflow` for a tensor, `numpy` for an array.
        """
        # Outside of the stage the value is not used, but must not overflow.
        progress = library.minimum(library.maximum((epoch - self.begin) / (self.end - self.begin), 0.0), 1.0)
        if self.exponential:
            return self.first * (self.last / self.first) ** progress
        return self.first + (self.last - self.first) * progress


def parse_stages(lr_strategy: Any) -> list[Stage]:
    """Parses a strategy; a ValueError names the wrong piece.

    Example:
      >>> parse_stages('10:0.5,20:0.25')[1]
      Stage(begin=10.0, end=20.0, first=0.25, last=0.25, exponential=False)
    """
    text = str(lr_strategy).strip()
    if ":" not in text and "," not in text:
        rate = _number(text, text)
        return [Stage(0.0, math.inf, rate, rate, exponential=False)]
    stages: list[Stage] = []
    for piece in text.split(","):
        epoch, colon, rates = piece.partition(":")
        if not colon:
            raise _malformed(piece, _FORM)
        begin = stages[-1].end if stages else 0.0
        end = _number(epoch, piece)
        if end <= begin:
            raise _malformed(piece, f"epochs must rise, and this stage would begin at epoch {begin:g}")
        stages.append(Stage(begin, end, *_rates(rates, piece)))
    return stages


def check_counts(num_samples: Any, global_batch_size: Any) -> None:
    """Raises a ValueError unless both sizes are positive numbers."""
    for argument, value in (("num_samples", num_samples), ("global_batch_size", global_batch_size)):
        if not is_number(value) or not 0 < float(value) < math.inf:
            raise ValueError(f"piecewise_lr({argument}={value!r}): expected a positive number.")


def rate_at(stages: Sequence[Stage], step: Any, num_samples: float, global_batch_size: float, library: Any) -> Any:
    """Returns the rate at a step. After the last stage its end value persists.

    Args:
      stages: the result of `parse_stages`.
      step: a 64-bit floating-point tensor or array, so that stages end at the exact step.
      num_samples: samples in an epoch.
      global_batch_size: samples in a step.
      library: `tensorflow` for a tensor, `numpy` for an array.

    Example:
      >>> import numpy
      >>> rate_at(parse_stages('1:0.5,2:0.5->0'), numpy.arange(0.0, 5.0), 100, 50, numpy)
      array([0.5 , 0.5 , 0.5 , 0.25, 0.  ])
    """
    epoch = step * float(global_batch_size) / float(num_samples)
    rate = epoch * 0.0 + stages[-1].last
    for stage in reversed(stages):
        rate = library.where(epoch < stage.end, stage.rate(epoch, library), rate)
    return rate


def _rates(text: str, piece: str) -> tuple[float, float, bool]:
    """Returns the first and last rate of a stage, and whether it is exponential."""
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
