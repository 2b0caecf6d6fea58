"""The position in the data, and what else a resumed run needs to know besides the variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Position:
    """What a resumed run needs to know besides the variables.

    Attributes:
      elements: elements of the data that have been read; 0 after the end of the data, so the next run starts over.
      seed: the run's random seed, which decides the order of shuffled data.
      samples: for each MoXing dataset, the next sample.
      sizes: for each dataset its number of samples, -1 if it is not known; to notice data that has changed.
      hooks: states of hooks by their keys.
    """

    elements: int = 0
    seed: int | None = None
    samples: tuple[int, ...] = ()
    sizes: tuple[int, ...] = field(default=(), compare=False)
    hooks: Mapping[str, Any] = field(default_factory=dict, compare=False)


START = Position()
