"""Checkpoints at the start, every so often, and at the end."""

from __future__ import annotations

import time

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoint import Keeper
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.action import until_count
from moxing.tensorflow.executor.inputs import Inputs
from moxing.tensorflow.executor.loop import Progress


class NotFiniteError(RuntimeError):
    """A loss or a variable is NaN or infinite: training has diverged.

    Args:
      what: what is not finite, a sentence.
      checkpoint: the last one that is good.
    """

    def __init__(self, what: str, checkpoint: str | None = None) -> None:
        super().__init__(f"{what} {last_good(checkpoint)}")
        self.what = what


class SaveAction:
    """Writes checkpoints. It refuses to save variables that are not finite, so the last good one stays the last.

    Args:
      config: the run.
      keeper: writes them.
      session: whose variables they are.
      inputs: the data, whose place is saved.
      saved: the step of the checkpoint that the run goes on from, if it does.
    """

    def __init__(
        self,
        config: RunConfig,
        keeper: Keeper,
        session: tf.Session,
        inputs: Inputs,
        saved: int | None,
    ) -> None:
        self._config, self._keeper, self._session = config, keeper, session
        self._inputs = inputs
        self._variables = [variable for variable in tf.trainable_variables() if variable.dtype.is_floating]
        with tf.name_scope("moxing/check"):
            checks = [tf.reduce_all(tf.math.is_finite(variable)) for variable in self._variables]
            self._finite = tf.stack(checks) if checks else tf.constant([True])
        self._time = time.monotonic()
        self._saved = saved

    @property
    def last_checkpoint(self) -> str | None:
        """The newest checkpoint of the run."""
        return self._keeper.last

    def steps_until(self, done: int) -> int:
        return until_count(done, self._config.save_steps)

    def act(self, done: int, progress: Progress) -> None:
        by_step = self._config.save_steps and done % self._config.save_steps == 0
        by_time = self._config.save_secs and time.monotonic() - self._time >= self._config.save_secs
        if by_step or by_time:
            self.save(done, progress)

    def finish(self, done: int, progress: Progress) -> None:
        self.save(done, progress)

    def changed(self) -> None:
        """The variables are others than those of the last checkpoint, at the same step."""
        self._saved = None

    def save(self, done: int, progress: Progress) -> None:
        """Writes a checkpoint unless this step's is there already with the same place in the data."""
        if self._saved == progress.global_step and not progress.ended:
            return
        finite = self._session.run(self._finite)
        if not np.all(finite):
            names = [variable.op.name for variable, good in zip(self._variables, finite, strict=True) if not good]
            what = f"Step {done - 1}: variables became NaN or infinite: {', '.join(names[:8])}."
            raise NotFiniteError(what, self._keeper.last)
        # A run that saw the end of the data starts over next time.
        elements, samples = (0, []) if progress.ended else self._inputs.place_after(progress.ledger.steps)
        self._keeper.save(self._session, progress.global_step, elements, samples)
        self._time, self._saved = time.monotonic(), progress.global_step


def last_good(prefix: str | None) -> str:
    """What to say about the checkpoint that is left.

    Example:
      >>> last_good('log/model.ckpt-10')
      'The last good checkpoint is log/model.ckpt-10; look for NaN in the data, lower the learning rate or clip \
gradients, and run again.'
    """
    kept = f"The last good checkpoint is {prefix}" if prefix else "No checkpoint was written"
    return f"{kept}; look for NaN in the data, lower the learning rate or clip gradients, and run again."
