"""Whether a metric has become better."""

from __future__ import annotations

import math
from typing import Any

#: In mode `auto` a metric whose name has one of these words in it is better when it is higher.
_HIGHER = ("acc", "auc", "precision", "recall", "f1", "fmeasure", "top_", "top1", "top5", "iou", "bleu")

MODES = ("auto", "min", "max")


def higher_is_better(monitor: str, mode: str) -> bool:
    """Whether to look for the highest value of a metric.

    Args:
      monitor: its name.
      mode: `max`, `min`, or `auto`, which goes by the name.

    Example:
      >>> higher_is_better('top_5_accuracy', 'auto'), higher_is_better('loss', 'auto'), higher_is_better('loss', 'max')
      (True, False, True)
    """
    if mode == "auto":
        return any(word in monitor.lower() for word in _HIGHER)
    return mode == "max"


class Best:
    """The best value so far, and how many evaluations ago it was.

    Args:
      higher: higher is better.
      min_delta: what is no more than this better than the best is not counted as better.

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
        """Takes the next value; true when it is better. What is not a number never is."""
        better = not math.isnan(value) and (self.value is None or self._sign * (value - self.value) > self._min_delta)
        if better:
            self.value, self.waited = value, 0
        else:
            self.waited += 1
        return better

    def state(self) -> dict[str, Any]:
        """As JSON."""
        return {"value": self.value, "waited": self.waited}

    def load_state(self, state: Any) -> None:
        """Takes back what `state` said."""
        self.value, self.waited = state["value"], int(state["waited"])
