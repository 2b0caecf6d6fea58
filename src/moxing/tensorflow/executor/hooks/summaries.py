"""Summaries into an event file that TensorBoard reads."""

from __future__ import annotations

from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.action import until_index
from moxing.tensorflow.executor.hooks.events import EventFile
from moxing.tensorflow.executor.loop import Progress


class SummaryAction:
    """Writes the summaries of every n-th step.

    Args:
      config: the run.
      events: where to.
    """

    def __init__(self, config: RunConfig, events: EventFile) -> None:
        self._every = config.summary_every
        self._events = events

    def steps_until(self, done: int) -> int:
        return until_index(done, self._every)

    def due(self, done: int) -> bool:
        """True when the step that brings the count to `done` is to be summarised."""
        return bool(self._every) and (done - 1) % self._every == 0

    def act(self, done: int, progress: Progress) -> None:
        if progress.summary:
            self._events.add(progress.summary, done - 1)

    def finish(self, done: int, progress: Progress) -> None:
        self._events.close()
