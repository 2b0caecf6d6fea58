"""Profiles some steps for TensorBoard."""

from __future__ import annotations

import os
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.file.urls import find_remote
from moxing.tensorflow.executor.actions.action import NEVER, Action
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.loop.progress import Progress
from moxing.tensorflow.executor.specs import RunResult


class ProfilerHook(RunHook):
    """Records some steps with TensorFlow's profiler, in every mode.

    The trace is in `<directory>/plugins/profile/<time>/`, where TensorBoard's profile plugin reads it. It does not
    include operations that TensorFlow considers cheap; version 2.21 offers no other level in Python.

    Args:
      start_step: the first step to record, counted from 0; in TRAIN by `global_step`. The first steps of a run include
        start-up costs.
      steps: number of steps to record.
      directory: the directory of the trace; None for `log_dir`, in a cluster only on the chief.

    Example:
      >>> hook = ProfilerHook(start_step=100, steps=5)
    """

    in_every_mode = True

    def __init__(self, start_step: int = 10, steps: int = 5, directory: str | None = None) -> None:
        super().__init__()
        self._start, self._steps = self._count("start_step", start_step, least=0), self._count("steps", steps)
        if directory is not None and (not isinstance(directory, str | os.PathLike) or not str(directory)):
            raise ValueError(self._wrong("directory", directory, "a path, or None for log_dir"))
        self._directory = None if directory is None else os.fspath(directory)
        if self._directory is not None and find_remote(self._directory, "directory"):
            raise ValueError(
                self._wrong("directory", directory, "a local path, or None for log_dir, which may be a url")
            )
        self._action: ProfilerAction | None = None

    def action(self, run: RunContext) -> ProfilerAction | None:
        directory = self._directory or run.config.log_dir
        if directory is None:
            if run.step.strategy.is_chief:
                tf.logging.warning("ProfilerHook writes no trace: give it directory=..., or mox.run log_dir=....")
            return None
        done = run.steps_before
        if done > self._start:
            tf.logging.warning(
                "ProfilerHook(start_step=%d): the run begins at step %d; nothing is recorded.", self._start, done
            )
            return None
        self._action = ProfilerAction(self._start, self._steps, directory)
        if done == self._start:
            self._action.start()
        return self._action

    def run_ended(self, reason: str, error: BaseException | None, result: RunResult | None) -> None:
        if self._action is not None:
            self._action.stop()
            self._action = None


class ProfilerAction(Action):
    """Starts and stops the profiler.

    Args:
      start: the first step to record.
      steps: number of steps to record.
      directory: the directory of the trace.
    """

    def __init__(self, start: int, steps: int, directory: str) -> None:
        self._first, self._last, self._directory = start, start + steps, directory
        self._profiler: Any = tf.compat.v2.profiler.experimental
        self._is_on = self._was_on = False

    def start(self) -> None:
        """Starts recording."""
        self._is_on = self._was_on = True
        self._profiler.start(self._directory)

    def stop(self) -> None:
        """Stops recording and writes the trace; does nothing when not recording."""
        if self._is_on:
            self._is_on = False
            self._profiler.stop()
            tf.logging.info("Profile written to: %s", os.path.join(self._directory, "plugins", "profile"))

    def steps_until(self, done: int) -> int:
        following = [step - done for step in (self._first, self._last) if step > done]
        return following[0] if following else NEVER

    def act(self, done: int, progress: Progress) -> None:
        if self._is_on and done >= self._last:
            self.stop()
        elif not self._was_on and done >= self._first:
            self.start()

    def finish(self, done: int, progress: Progress) -> None:
        self.stop()
        if not self._was_on:
            tf.logging.warning(
                "ProfilerHook(start_step=%d): the run ended at step %d; nothing was recorded.", self._first, done
            )
