"""The user's own hooks on an evaluation branch."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import NEVER, Action
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.evaluation.branch import Evaluation
from moxing.tensorflow.executor.loop.progress import Progress


class BranchHooksAction(Action):
    """Runs hooks whose `run_inter_mode` is true after every training step, on the next batch of the branch.

    The data restarts when it ends. Hooks that override neither `before_run` nor `after_run` cost nothing.

    Args:
      evaluation: the branches and their hooks.
      run: the run, whose own hooks can end it.
    """

    def __init__(self, evaluation: Evaluation, run: RunContext) -> None:
        self._branch, self._hooks, self._run = evaluation.branches[0], evaluation.hooks, run
        self._started = False

    def steps_until(self, done: int) -> int:
        return 1 if self._hooks.want_every_step else NEVER

    def act(self, done: int, progress: Progress) -> None:
        if not self._hooks.want_every_step:
            return
        session = self._run.session
        if not self._started:
            self._started = True
            session.run(self._branch.restart)
        try:
            self._hooks.run(session, [], self._branch.feeds)
        except tf.errors.OutOfRangeError:
            session.run(self._branch.restart)
            self._hooks.run(session, [], self._branch.feeds)
        if self._hooks.stop_requested:
            self._run.hooks.request_stop()

    def finish(self, done: int, progress: Progress) -> None:
        self._hooks.end(self._run.session)
