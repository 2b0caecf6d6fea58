"""Summaries into an event file that TensorBoard reads."""

from __future__ import annotations

import itertools
import os

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.action import until_index
from moxing.tensorflow.executor.loop import Progress

_WRITERS = itertools.count()


class SummaryAction:
    """Writes the summaries of every n-th step.

    Args:
      config: the run; it has a `log_dir`.
    """

    def __init__(self, config: RunConfig) -> None:
        self._every = config.summary_every
        # The file's name holds the second; two runs within one must not write into the same.
        self._writer = tf.summary.FileWriter(config.log_dir, filename_suffix=f".{os.getpid()}.{next(_WRITERS)}")

    def steps_until(self, done: int) -> int:
        return until_index(done, self._every)

    def due(self, done: int) -> bool:
        """True when the step that brings the count to `done` is to be summarised."""
        return bool(self._every) and (done - 1) % self._every == 0

    def act(self, done: int, progress: Progress) -> None:
        if progress.summary:
            self._writer.add_summary(progress.summary, done - 1)
            self._writer.flush()

    def finish(self, done: int, progress: Progress) -> None:
        self._writer.close()
