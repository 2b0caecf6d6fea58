"""What a group of steps reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from moxing.tensorflow.executor.build.ledger import LedgerValues


class Aside(Enum):
    """What a step computes only when an action asks for it."""

    SUMMARY = "summary"
    PROBES = "probes"


@dataclass(frozen=True)
class Progress:
    """The state of a run after a group of steps.

    Attributes:
      global_step: the training step counter.
      ledger: samples, steps, log_info.
      finite: False if a loss was NaN or infinite in the last step.
      ended: True if the data ended.
      halt: not 0 if all workers stop together, see `TrainStep.halt`.
      next_steps: the number of steps that all workers do in the next call, where they must agree.
      summary: the serialised summaries of the last step, if wanted.
      probes: `Step.probes` of the last step, if wanted.
      guard: number, from 1, of a tensor of `Step.guarded` that was not finite in the last step, else 0.
    """

    global_step: int
    ledger: LedgerValues
    finite: bool = True
    ended: bool = False
    halt: int = 0
    next_steps: int = 1
    summary: bytes | None = None
    probes: Mapping[str, float] = field(default_factory=dict)
    guard: int = 0
