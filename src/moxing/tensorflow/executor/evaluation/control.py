"""What evaluation hooks can do to a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import Action
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.checkpoints.keeper import Keeper
from moxing.tensorflow.executor.hooks.evaluation import BEST


class RunControl:
    """Implements `Control` for one run.

    Args:
      run: the run.
      actions: notified when the variables are replaced.

    Attributes:
      stopping: True after a hook has stopped the training.
    """

    def __init__(self, run: RunContext, actions: Sequence[Action]) -> None:
        self._run, self._actions = run, actions
        log_dir = run.config.log_dir
        self._keepers: dict[str, Keeper] = {}
        self._saver = (
            tf.train.Saver([v for v in tf.global_variables() if v.op.name != "global_step"], max_to_keep=1)
            if log_dir
            else None
        )
        self._factor = tf.placeholder(tf.float32, [], name="moxing/new_factor")
        variable = run.step.rate_factor
        self._scale = None if variable is None else variable.assign(self._factor).op
        # Run by all synchronous workers after the variables were loaded.
        self._after_restore = run.step.strategy.sync_ops()
        self._step = 0
        self._restores = False
        self.stopping = False

    @property
    def by_signal(self) -> bool:
        """True when a signal ends the run; it will be resumed."""
        return self._run.stop.number is not None

    def at_step(self, step: int) -> None:
        """Notes the training step, counted from 0, that hooks decide after."""
        self._step = step

    def stop(self, why: str) -> None:
        tf.logging.info("Training stops early: %s.", why)
        self.stopping = True
        self._announce({"stop": why})
        self.leave()

    def leave(self) -> None:
        """Ends the training after this step; synchronous workers all decide the same."""
        self._run.hooks.request_stop(by_all=not self._run.asynchronous)

    def scale_learning_rate(self, factor: float) -> None:
        if self._scale is None:
            raise ValueError(
                "model_fn returned the hook that lowers the learning rate in inter_mode only: return it in TRAIN too."
            )
        self._run.session.run(self._scale, {self._factor: factor})
        tf.logging.info("The learning rate is now %g times that of the optimizer.", factor)
        self._announce({"factor": factor})

    def keep_best(self, directory: str = BEST, most: int = 1) -> None:
        log_dir = self._run.config.log_dir
        if log_dir is None:
            return
        if directory not in self._keepers:
            self._keepers[directory] = Keeper(os.path.join(log_dir, directory), None, most)
        self._keepers[directory].save(self._run.session, self._step + 1)

    def restore_best(self) -> None:
        self._restores = True

    def finish(self) -> None:
        """Restores the best variables if a hook asked for it. Call it when all workers have done their last step."""
        if not self._restores:
            return
        if self._saver is not None:
            directory = os.path.join(str(self._run.config.log_dir), BEST)
            found = tf.train.latest_checkpoint(directory)
            if found is not None:
                self._saver.restore(self._run.session, found)
                tf.logging.info("Restored the best variables from %s.", found)
            else:
                tf.logging.warning("The best variables are no longer in %s; keeping the last ones.", directory)
        self._run.session.run(self._after_restore)
        for action in self._actions:
            action.variables_changed()

    def _announce(self, decision: dict[str, Any]) -> None:
        """The chief of asynchronous workers decides for all of them."""
        if self._run.asynchronous and self._run.job.role.is_chief:
            self._run.job.announce(decision)
