"""The user's own hooks on the `inter_mode` graph."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.hooks.action import NEVER
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
from moxing.tensorflow.executor.inter import Inter
from moxing.tensorflow.executor.loop import Progress


class InterUserAction:
    """Runs hooks whose `run_inter_mode` is true, after every training step, on the next batch of that mode.

    The data begins anew when it ends. Hooks that override neither `before_run` nor `after_run` cost nothing.

    Args:
      inter: the branch of the graph.
      beside: its hooks.
      hooks: those of the training, which end the run.
      session: where.
    """

    def __init__(self, inter: Inter, beside: UserHooks, hooks: UserHooks, session: tf.Session) -> None:
        self._inter, self._beside, self._hooks, self._session = inter, beside, hooks, session
        self._begun = False

    def steps_until(self, done: int) -> int:
        return 1 if self._beside.want_every_step else NEVER

    def act(self, done: int, progress: Progress) -> None:
        if not self._beside.want_every_step:
            return
        if not self._begun:
            self._begin()
        try:
            self._beside.run(self._session, [], self._inter.feeds)
        except tf.errors.OutOfRangeError:
            self._begin()
            self._beside.run(self._session, [], self._inter.feeds)
        if self._beside.stop_requested:
            self._hooks.request_stop()

    def finish(self, done: int, progress: Progress) -> None:
        self._beside.end(self._session)

    def _begin(self) -> None:
        self._begun = True
        self._session.run(self._inter.restart)
