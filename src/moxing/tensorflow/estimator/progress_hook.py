"""The progress bar of an Estimator's training, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.loop.progress_bar import open_display
from moxing.tf1.estimator import known_hooks


class ProgressHook(tf.train.SessionRunHook):
    """Shows steps, steps/s, time left and the loss. It looks at the last step of each call.

    Args:
      loss: the loss of the training.
      steps: the number of steps done in this session.
      hooks: the hooks of the training, one of which may know its last step.
      contexts: closes the bar, also after an error.
    """

    def __init__(
        self,
        loss: tf.Tensor,
        steps: Callable[[], int],
        hooks: Sequence[tf.train.SessionRunHook],
        contexts: ExitStack,
    ) -> None:
        self._loss, self._steps, self._hooks, self._contexts = loss, steps, hooks, contexts
        self._global_step = tf.train.get_global_step()
        self._start = 0
        self._display: Any = None
        self._task: Any = None

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        if self._display is None:  # else the session was opened again after an error
            self._start = int(session.run(self._global_step))
            total = known_hooks.end_of_training(self._hooks, self._start)
            self._display, self._task = self._contexts.enter_context(open_display("train", total, self._start))

    def before_run(self, run_context: Any) -> tf.train.SessionRunArgs:
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        speed = self._display.tasks[0].speed
        self._display.update(
            self._task,
            completed=self._start + self._steps(),
            values=f"loss {float(run_values.results):.4g}",
            rate=f"{speed:,.1f} steps/s" if speed else "",
        )
