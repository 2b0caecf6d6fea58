"""Summaries of the training speed."""

from __future__ import annotations

import time

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import Action, until_index
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.actions.summaries import EventFile
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.loop.progress import Progress


class ThroughputHook(RunHook):
    """Writes the summaries `steps_per_sec` and `samples_per_sec` every n training steps.

    The time of evaluations does not count. In a cluster, only the samples of the chief count.

    Args:
      every_n_steps: steps between two values.
      log: also log them.

    Example:
      >>> hook = ThroughputHook(every_n_steps=50)
    """

    def __init__(self, every_n_steps: int = 100, log: bool = False) -> None:
        super().__init__()
        self._every, self._log = self._count("every_n_steps", every_n_steps), self._flag("log", log)

    def action(self, run: RunContext) -> ThroughputAction | None:
        if run.events is None and not self._log:
            self._warn_no_output(run)
            return None
        return ThroughputAction(self._every, run.events, self._log)


class ThroughputAction(Action):
    """Measures from one due step to the next.

    Args:
      every: steps between two values.
      events: the event file; None writes no summary.
      log: also log them.
    """

    def __init__(self, every: int, events: EventFile | None, log: bool) -> None:
        self._every, self._events, self._log = every, events, log
        self._time: float | None = None
        self._steps = self._samples = 0

    def steps_until(self, done: int) -> int:
        return until_index(done, self._every)

    def act(self, done: int, progress: Progress) -> None:
        # The first group includes start-up costs and only starts the clock.
        if self._time is not None and (done - 1) % self._every:
            return
        now, ledger = time.perf_counter(), progress.ledger
        if self._time is not None and ledger.steps > self._steps:
            seconds = max(now - self._time, 1e-9)
            values = {
                "steps_per_sec": (ledger.steps - self._steps) / seconds,
                "samples_per_sec": (ledger.samples - self._samples) / seconds,
            }
            if self._events is not None:
                self._events.add_scalars(values, done - 1)
            if self._log:
                fields = "\t".join(f"{name}: {value:.3f}" for name, value in values.items())
                tf.logging.info("step: %d\t%s", done - 1, fields)
        self._time, self._steps, self._samples = now, ledger.steps, ledger.samples

    def pause(self, seconds: float) -> None:
        if self._time is not None:
            self._time += seconds

    def finish(self, done: int, progress: Progress) -> None:
        if self._events is not None:
            self._events.close()
