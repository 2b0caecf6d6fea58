"""Checkpoints at the start, periodically, and at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import Action, NotFiniteError, until_count
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.checkpoints.keeper import Keeper
from moxing.tensorflow.executor.checkpoints.position import START
from moxing.tensorflow.executor.loop.progress import Progress


class SaveAction(Action):
    """Writes checkpoints. Refuses to save trainable variables that are not finite, so the last checkpoint can be used.

    Args:
      run: the run.
      keeper: writes the checkpoints.
      actions: the actions whose state is saved with every checkpoint.
    """

    def __init__(self, run: RunContext, keeper: Keeper, actions: Sequence[Action]) -> None:
        self._config, self._session, self._inputs = run.config, run.session, run.step.inputs
        self._keeper, self._actions = keeper, actions
        self._variables = [variable for variable in tf.trainable_variables() if variable.dtype.is_floating]
        with tf.name_scope("moxing/check"):
            checks = [tf.reduce_all(tf.math.is_finite(variable)) for variable in self._variables]
            self._finite = tf.stack(checks) if checks else tf.constant([True])
        self._time = time.monotonic()
        # A resumed run does not write the checkpoint again that it was restored from.
        self._saved = run.start.global_step if keeper.last is not None else None

    def steps_until(self, done: int) -> int:
        return until_count(done, self._config.save_steps)

    def act(self, done: int, progress: Progress) -> None:
        by_step = self._config.save_steps and done % self._config.save_steps == 0
        by_time = self._config.save_secs and time.monotonic() - self._time >= self._config.save_secs
        if by_step or by_time:
            self.save(done, progress)

    def finish(self, done: int, progress: Progress) -> None:
        self.save(done, progress)

    def data_failed(self, done: int, progress: Progress) -> None:
        self.save(done, progress)

    def variables_changed(self) -> None:
        self._saved = None

    def save(self, done: int, progress: Progress) -> None:
        """Writes a checkpoint, unless one with this step and input position exists."""
        if self._saved == progress.global_step and not progress.ended:
            return
        finite = self._session.run(self._finite)
        if not np.all(finite):
            names = [variable.op.name for variable, good in zip(self._variables, finite, strict=True) if not good]
            when = f"Step {done - 1}: variables became" if done else "Before the first step: variables are"
            what = f"{when} NaN or infinite: {', '.join(names[:8])}."
            raise NotFiniteError(what, self._keeper.last)
        # After the end of the data the next run reads from the start.
        position = START if progress.ended else self._inputs.position_after(progress.ledger.steps)
        states = {key: state for action in self._actions for key, state in action.state().items()}
        self._keeper.save(self._session, progress.global_step, replace(position, hooks=states))
        self._time, self._saved = time.monotonic(), progress.global_step
