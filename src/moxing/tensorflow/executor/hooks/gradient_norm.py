"""Summaries of how large the gradients are."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.hooks.action import until_index
from moxing.tensorflow.executor.hooks.events import EventFile
from moxing.tensorflow.executor.hooks.run_hook import RunHook, RunParts
from moxing.tensorflow.executor.loop import Progress
from moxing.tensorflow.parallel.gradients import GradientPairs, flat

TAG = "gradient_norm"


class GradientNormHook(RunHook):
    """Writes the summary `gradient_norm` every n training steps.

    It is the root of the sum of the squares of all gradients: of their mean over all towers, and over all workers that
    go in step; before `--gradient_clip`, and without the loss scale. In other steps it is not computed.

    Args:
      every_n_steps: the period.
      log: print it too.

    Example:
      >>> hook = GradientNormHook(every_n_steps=50)
    """

    def __init__(self, every_n_steps: int = 100, log: bool = False) -> None:
        super().__init__()
        self._every, self._log = self._count("every_n_steps", every_n_steps), self._flag("log", log)

    def probes(self, gradients: Sequence[GradientPairs], written: bool) -> dict[str, tf.Tensor]:
        return {TAG: global_norm(gradients)} if any(gradients) and (written or self._log) else {}

    def action(self, run: RunParts) -> GradientNormAction | None:
        if run.events is None and not self._log:
            self._warn_of_no_place(run)
        return GradientNormAction(self._every, run.events, self._log) if TAG in run.step.probes else None


def global_norm(gradients: Sequence[GradientPairs]) -> tf.Tensor:
    """The norm of all gradients of all losses; rows of `tf.IndexedSlices` count one by one.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     print(session.run(global_norm([[(tf.constant([3.0]), None)], [(tf.constant([[4.0]]), None)]])))
      5.0
    """
    values = [gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient for gradient in flat(gradients)]
    # Half precision has no room for the squares.
    squares = [tf.reduce_sum(tf.square(tf.cast(value, tf.float32))) for value in values]
    return tf.sqrt(tf.add_n(squares))


class GradientNormAction:
    """Writes what the step computed for it.

    Args:
      every: the period.
      events: where to write.
      log: print.
    """

    def __init__(self, every: int, events: EventFile | None, log: bool) -> None:
        self._every, self._events, self._log = every, events, log

    def steps_until(self, done: int) -> int:
        return until_index(done, self._every)

    def due(self, done: int) -> bool:
        """True when the step that brings the count to `done` is to compute the norm."""
        return (done - 1) % self._every == 0

    def act(self, done: int, progress: Progress) -> None:
        norm = progress.probes.get(TAG)
        if norm is None or not self.due(done):
            return
        if self._events is not None:
            self._events.add_scalars({TAG: norm}, done - 1)
        if self._log:
            tf.logging.info("step: %d\t%s: %g", done - 1, TAG, norm)

    def finish(self, done: int, progress: Progress) -> None:
        if self._events is not None:
            self._events.close()
