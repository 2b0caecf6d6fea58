"""The learning rates in use, for those who look at a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.optimizer.rate_factor import rate_of
from moxing.tf1.surgery import only_reads_variables

TAG = "learning_rate"

#: At most so often a rate is fetched for a display.
_SECONDS = 0.5


def learning_rates(optimizers: Sequence[Any]) -> dict[str, tf.Tensor]:
    """The rates of optimizers whose gradients were applied, by tag; equal ones once.

    Args:
      optimizers: one for every loss.

    Example:
      >>> with tf.Graph().as_default():
      ...     rates = learning_rates([tf.train.GradientDescentOptimizer(rate) for rate in (0.5, 0.5, 0.25)])
      ...     print({tag: tf.get_static_value(rate).item() for tag, rate in rates.items()})
      {'learning_rate': 0.5, 'learning_rate_1': 0.25}
    """
    rates: list[tf.Tensor] = []
    with tf.name_scope("moxing/learning_rate"):
        for optimizer in optimizers:
            rate = rate_of(optimizer)
            if rate is not None and not any(_equal(rate, other) for other in rates):
                rates.append(rate)
    return {TAG if not number else f"{TAG}_{number}": rate for number, rate in enumerate(rates)}


def _equal(one: tf.Tensor, other: tf.Tensor) -> bool:
    if one is other:
        return True
    values = [tf.get_static_value(tensor) for tensor in (one, other)]
    return values[0] is not None and values[0] == values[1]


class ShownRates:
    """What a display says of the rates, fetched now and then by a `session.run` of its own.

    Args:
      rates: the rates by tag.
      session: the run's.
    """

    def __init__(self, rates: dict[str, tf.Tensor], session: tf.Session) -> None:
        self._given, self._session = rates, session
        self._rates: dict[str, tf.Tensor] | None = None
        self._fetched = -_SECONDS
        self._text = ""

    def text(self) -> str:
        """Such as `learning_rate 0.1`; empty where no rate can be fetched."""
        if self._rates is None:
            self._rates = {tag: rate for tag, rate in self._given.items() if only_reads_variables(rate)}
        now = time.monotonic()
        if self._rates and now - self._fetched >= _SECONDS:
            values = self._session.run(self._rates)
            self._text = "  ".join(f"{tag} {value:.4g}" for tag, value in values.items())
            self._fetched = now
        return self._text
