"""What hooks share that need no look at every step: each becomes an action of the run, or adds to the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.arguments import ChecksArguments
from moxing.tensorflow.executor.specs import RunResult
from moxing.tensorflow.parallel.gradients import GradientPairs

if TYPE_CHECKING:  # the step is built with these hooks
    from moxing.tensorflow.executor.checkpoint import Keeper
    from moxing.tensorflow.executor.config import RunConfig
    from moxing.tensorflow.executor.graph import Step
    from moxing.tensorflow.executor.hooks.action import Action
    from moxing.tensorflow.executor.hooks.events import EventFile


@dataclass(frozen=True)
class RunParts:
    """What an action of a hook may need of the run.

    Attributes:
      config: the run.
      step: its step.
      session: where.
      events: its event file; None without `log_dir`, and on workers that write nothing.
      keeper: writes its checkpoints, where there are any.
      done: steps that are done already, as actions count them.
      remembered: what hooks said when the checkpoint that the run goes on from was written, by their keys.
    """

    config: RunConfig
    step: Step
    session: tf.Session
    events: EventFile | None
    keeper: Keeper | None
    done: int
    remembered: Mapping[str, Any]


class RunHook(ChecksArguments, AggregativeSessionRunHook):
    """A hook that the run itself serves: the steps between two things to do go many at a time.

    One serves all towers, on every worker there is one.
    """

    #: Works in EVAL and PREDICT too.
    in_every_mode = False
    #: True where the hook changes the learning rate.
    scales_learning_rate = False

    def support_aggregation(self) -> bool:
        return True

    def support_sync_workers(self) -> bool:
        return False

    def run_inter_mode(self) -> bool:
        return False

    def probes(self, gradients: Sequence[GradientPairs], written: bool) -> dict[str, tf.Tensor]:
        """Scalars that are computed in the steps that the hook's action is due at.

        Args:
          gradients: for every loss what is applied.
          written: there is an event file to write them to.
        """
        return {}

    def guarded(self) -> dict[str, tf.Tensor]:
        """Tensors that end the run where they are not finite, by name."""
        return {}

    def action(self, run: RunParts) -> Action | None:
        """What the hook does between the steps; None: nothing."""
        return None

    def run_ended(self, reason: str, error: BaseException | None, result: RunResult | None) -> None:
        """Called once, whatever ended the run.

        Args:
          reason: `end`, `signal` or `error`.
          error: what was raised.
          result: what `mox.run` returns.
        """

    def _warn_of_no_place(self, run: RunParts) -> None:
        if run.step.strategy.is_chief:
            tf.logging.warning("%s does nothing: give mox.run log_dir=..., or the hook log=True.", type(self).__name__)
