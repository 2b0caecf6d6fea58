"""Hooks that need no look at every step: each becomes an action of the run, or adds to the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.arguments import ChecksArguments
from moxing.tensorflow.executor.specs import RunResult
from moxing.tensorflow.parallel.gradients import GradientPairs

if TYPE_CHECKING:  # the step is built with these hooks
    from moxing.tensorflow.executor.actions.action import Action
    from moxing.tensorflow.executor.actions.context import RunContext


class RunHook(ChecksArguments, AggregativeSessionRunHook):
    """A hook that the run itself serves: between two due steps, many steps run per `session.run`.

    One hook serves all towers. Every worker has its own.
    """

    #: True where the hook works in EVAL and PREDICT, too.
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
        """Scalars that a step computes only when the hook's action wants them.

        Args:
          gradients: for every loss the gradients that are applied.
          written: True where there is an event file to write them to.
        """
        return {}

    def guarded(self) -> dict[str, tf.Tensor]:
        """Tensors that end the run when they are not finite, by name."""
        return {}

    def action(self, run: RunContext) -> Action | None:
        """What the hook does between steps; None for nothing."""
        return None

    def run_ended(self, reason: str, error: BaseException | None, result: RunResult | None) -> None:
        """Called once when the run has ended.

        Args:
          reason: `end`, `signal` or `error`.
          error: the exception, for `error`.
          result: what `mox.run` returns, for `end`.
        """

    def _warn_no_output(self, run: RunContext) -> None:
        if run.step.strategy.is_chief:
            tf.logging.warning("%s does nothing: give mox.run log_dir=..., or the hook log=True.", type(self).__name__)
