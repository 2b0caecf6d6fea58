"""The learning rates that the progress bar shows."""

from __future__ import annotations

import time

import tensorflow.compat.v1 as tf

from moxing.tf1.graph.surgery import only_reads_variables

#: Rates are fetched at most this often.
_SECONDS = 0.5


class ShownRates:
    """The learning rates as a display shows them, fetched from time to time by a separate `session.run`.

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
