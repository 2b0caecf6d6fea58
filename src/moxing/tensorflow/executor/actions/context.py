"""What actions may use of the run they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.specs import ModeKeys

if TYPE_CHECKING:  # for types only: the imports would be circular
    from moxing.tensorflow.executor.actions.summaries import EventFile
    from moxing.tensorflow.executor.build.step import Step
    from moxing.tensorflow.executor.checkpoints.keeper import Keeper
    from moxing.tensorflow.executor.checkpoints.position import Position
    from moxing.tensorflow.executor.config import RunConfig
    from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
    from moxing.tensorflow.executor.job import Job
    from moxing.tensorflow.executor.loop.progress import Progress
    from moxing.tensorflow.executor.loop.signals import StopSignal


@dataclass(frozen=True)
class RunContext:
    """An open run: everything is built, restored and ready for the first step.

    Attributes:
      config: the checked arguments of `mox.run`.
      job: the processes that take part.
      step: the step in the graph.
      session: the session of the run.
      hooks: the user's hooks, which may ask the run to stop.
      stop: whether a signal asked the run to stop.
      keeper: writes the checkpoints; None without `log_dir`, and on workers that write nothing.
      events: the event file; None where `keeper` is.
      start: the progress before the first step.
      position: where the run resumes in the data, and what actions saved with the checkpoint.
    """

    config: RunConfig
    job: Job
    step: Step
    session: tf.Session
    hooks: UserHooks
    stop: StopSignal
    keeper: Keeper | None
    events: EventFile | None
    start: Progress
    position: Position

    @property
    def training(self) -> bool:
        return self.config.mode is ModeKeys.TRAIN

    @property
    def asynchronous(self) -> bool:
        """True where each worker of a cluster does steps of its own."""
        return self.job.is_cluster and not self.step.strategy.synchronous

    @property
    def steps_before(self) -> int:
        """The steps of earlier runs, as actions count them."""
        return self.start.global_step if self.training and not self.asynchronous else 0
