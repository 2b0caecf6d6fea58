"""Tells whether a metric has improved."""

from __future__ import annotations

import math
from typing import Any

#: In mode `auto`, a metric with one of these words in its name is better when it is higher.
_HIGHER = ("acc", "auc", "precision", "recall", "f1", "fmeasure", "top_", "top1", "top5", "iou", "bleu")

MODES = ("auto", "min", "max")


def higher_is_better(monitor: str, mode: str) -> bool:
    """True if higher values of a metric are better.

    Args:
      monitor: the name of the metric.
      mode: `max`, `min`, or `auto` to decide by the name.

    Example:
      >>> higher_is_better('top_5_accuracy', 'auto'), higher_is_better('loss', 'auto'), higher_is_better('loss', 'max')
      (True, False, True)
    """
    if mode == "auto":
        return any(word in monitor.lower() for word in _HIGHER)
    return mode == "max"


class Best:
    """The best value so far, and the number of evaluations since.

    Args:
      higher: True if higher is better.
      min_delta: a change of at most this much is no improvement.

    Example:
      >>> best = Best(higher=True, min_delta=0.1)
      >>> [best.see(value) for value in (0.5, 0.55, 0.7)], best.value, best.waited
      ([True, False, True], 0.7, 0)
    """

    def __init__(self, higher: bool, min_delta: float) -> None:
        self._sign, self._min_delta = 1.0 if higher else -1.0, min_delta
        self.value: float | None = None
        self.waited = 0

    def see(self, value: float) -> bool:
        """Takes the next value; returns True if it is an improvement. NaN never is."""
        better = not math.isnan(value) and (self.value is None or self._sign * (value - self.value) > self._min_delta)
        if better:
            self.value, self.waited = value, 0
        else:
            self.waited += 1
        return better

    def state(self) -> dict[str, Any]:
        """The state, as JSON."""
        return {"value": self.value, "waited": self.waited}

    def load_state(self, state: Any) -> None:
        """Restores what `state` returned."""
        self.value, self.waited = state["value"], int(state["waited"])
