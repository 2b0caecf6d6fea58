"""Summaries, and the event file that TensorBoard reads."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import Action, until_index
from moxing.tensorflow.executor.checkpoints.disk import free_space
from moxing.tensorflow.executor.loop.progress import Aside, Progress

_WRITERS = itertools.count()


@dataclass(eq=False)
class EventFile:
    """One event file for all writers of a run: TensorBoard follows only the newest file of a directory.

    Attributes:
      directory: the directory of the file. The file is created with the first entry.
    """

    directory: str
    _writer: tf.summary.FileWriter | None = field(default=None, init=False)
    _failed: bool = field(default=False, init=False)

    def add(self, summary: bytes | tf.Summary, step: int) -> None:
        """Writes the summaries of a step. What cannot be written, on a full disk for instance, is left out."""
        try:
            self._add(summary, step)
        except (OSError, tf.errors.OpError) as error:
            self._writer = None
            if not self._failed:
                self._failed = True
                reason = (getattr(error, "message", "") or str(error)).splitlines()[0]
                tf.logging.warning(
                    "Cannot write summaries to %s (%s; %s free); training goes on without them.",
                    self.directory,
                    reason,
                    free_space(self.directory),
                )

    def _add(self, summary: bytes | tf.Summary, step: int) -> None:
        if self._writer is not None and not os.path.isdir(self.directory):
            self._writer = None  # the directory was removed
        if self._writer is None:
            # File names hold the time in seconds; two runs in the same second need different names.
            suffix = f".{os.getpid()}.{next(_WRITERS)}"
            self._writer = tf.summary.FileWriter(self.directory, filename_suffix=suffix)
        self._writer.add_summary(summary, step)
        self._writer.flush()

    def add_scalars(self, values: Mapping[str, float], step: int) -> None:
        """Writes scalars by tag."""
        scalars = [tf.Summary.Value(tag=tag, simple_value=number) for tag, number in values.items()]
        self.add(tf.Summary(value=scalars), step)

    def close(self) -> None:
        """Closes the file; a later `add` opens a new one."""
        if self._writer is not None:
            with contextlib.suppress(OSError, tf.errors.OpError):
                self._writer.close()
            self._writer = None


@dataclass(eq=False)
class SummaryAction(Action):
    """Writes the summaries of every n-th step.

    Attributes:
      every: the period in steps; 0 writes none.
      events: the event file of the run.
    """

    every: int
    events: EventFile

    def steps_until(self, done: int) -> int:
        return until_index(done, self.every)

    def wants(self, done: int) -> Collection[Aside]:
        return [Aside.SUMMARY] if self.every and (done - 1) % self.every == 0 else []

    def act(self, done: int, progress: Progress) -> None:
        if progress.summary:
            self.events.add(progress.summary, done - 1)

    def finish(self, done: int, progress: Progress) -> None:
        self.events.close()
