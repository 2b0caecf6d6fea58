"""Summaries of the gradient norm."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import Action, until_index
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.actions.summaries import EventFile
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.loop.progress import Aside, Progress
from moxing.tensorflow.parallel.gradients import GradientPairs, flatten

TAG = "gradient_norm"


class GradientNormHook(RunHook):
    """Writes the summary `gradient_norm` every n training steps.

    The norm is the square root of the sum of the squares of all gradients, averaged over all towers and synchronous
    workers, before `--gradient_clip` and without the loss scale. Other steps do not compute it.

    Args:
      every_n_steps: steps between two values.
      log: also log it.

    Example:
      >>> hook = GradientNormHook(every_n_steps=50)
    """

    def __init__(self, every_n_steps: int = 100, log: bool = False) -> None:
        super().__init__()
        self._every, self._log = self._count("every_n_steps", every_n_steps), self._flag("log", log)

    def probes(self, gradients: Sequence[GradientPairs], written: bool) -> dict[str, tf.Tensor]:
        return {TAG: global_norm(gradients)} if any(gradients) and (written or self._log) else {}

    def action(self, run: RunContext) -> GradientNormAction | None:
        if run.events is None and not self._log:
            self._warn_no_output(run)
        return GradientNormAction(self._every, run.events, self._log) if TAG in run.step.probes else None


def global_norm(gradients: Sequence[GradientPairs]) -> tf.Tensor:
    """The norm of all gradients of all losses; every row of `tf.IndexedSlices` counts.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     print(session.run(global_norm([[(tf.constant([3.0]), None)], [(tf.constant([[4.0]]), None)]])))
      5.0
    """
    values = [
        gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient for gradient in flatten(gradients)
    ]
    # Squares overflow in half precision.
    squares = [tf.reduce_sum(tf.square(tf.cast(value, tf.float32))) for value in values]
    return tf.sqrt(tf.add_n(squares))


class GradientNormAction(Action):
    """Writes the norm that the step computed.

    Args:
      every: the period in steps.
      events: the event file; None writes no summary.
      log: also log it.
    """

    def __init__(self, every: int, events: EventFile | None, log: bool) -> None:
        self._every, self._events, self._log = every, events, log

    def steps_until(self, done: int) -> int:
        return until_index(done, self._every)

    def wants(self, done: int) -> Collection[Aside]:
        return [Aside.PROBES] if (done - 1) % self._every == 0 else []

    def act(self, done: int, progress: Progress) -> None:
        norm = progress.probes.get(TAG)
        if norm is None or not self.wants(done):
            return
        if self._events is not None:
            self._events.add_scalars({TAG: norm}, done - 1)
        if self._log:
            tf.logging.info("step: %d\t%s: %g", done - 1, TAG, norm)

    def finish(self, done: int, progress: Progress) -> None:
        if self._events is not None:
            self._events.close()
