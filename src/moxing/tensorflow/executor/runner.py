"""Running the steps: how many at a time, what happens between, and when it is over."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import replace

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.journal import Journal
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.action import Action
from moxing.tensorflow.executor.hooks.gradient_norm import GradientNormAction
from moxing.tensorflow.executor.hooks.nan_guard import NanGuardAction
from moxing.tensorflow.executor.hooks.save import NotFiniteError, SaveAction
from moxing.tensorflow.executor.hooks.summaries import SummaryAction
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
from moxing.tensorflow.executor.job import Job
from moxing.tensorflow.executor.loop import SECONDS_PER_CALL, Progress, Stepper
from moxing.tensorflow.executor.progress import Bar
from moxing.tensorflow.executor.signals import StopSignal
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.parallel.strategy import HOOK, SIGNAL, Strategy

#: Steps shorter than this run on the calling thread: handing their small operations between threads costs more than it
#: gains.
_SHORT_STEP_SECONDS = 0.001
_ON_CALLING_THREAD = tf.RunOptions(inter_op_thread_pool=-1)


class Runner:
    """Drives the steps of one run.

    Args:
      config: the run.
      stepper: does the steps.
      session: where.
      hooks: the user's hooks.
      actions: the run's own.
      fresh_data: true when the data is read from its start, so that no data at all is an error.
      journal: knows why the data failed, when it did.
      strategy: how the workers go together.
      job: the processes around this one.
    """

    def __init__(
        self,
        config: RunConfig,
        stepper: Stepper,
        session: tf.Session,
        hooks: UserHooks,
        actions: Sequence[Action],
        fresh_data: bool,
        journal: Journal,
        strategy: Strategy,
        job: Job,
    ) -> None:
        self._config, self._stepper, self._session = config, stepper, session
        self._hooks, self._actions = hooks, actions
        self._summaries = next((action for action in actions if isinstance(action, SummaryAction)), None)
        self._saves = next((action for action in actions if isinstance(action, SaveAction)), None)
        self._guard = next((action for action in actions if isinstance(action, NanGuardAction)), None)
        self._norms = [action for action in actions if isinstance(action, GradientNormAction)]
        self._fresh_data, self._journal = fresh_data, journal
        self._seconds_per_step: float | None = None
        self._strategy, self._job = strategy, job
        self._asked_to_stop = False
        #: In a cluster without steps in common the counter goes on by what others do: our own steps are counted here.
        self._alone = job.is_cluster and not strategy.in_step

    def run(self, stop: StopSignal, bar: Bar) -> Progress:
        """Runs to the target, the end of the data, a hook's request or a signal."""
        progress = self._stepper.current(self._session)
        while self._reached(progress) < self._config.max_steps and not self._is_stopped(stop, progress):
            before = progress
            progress = self._advance(before)
            done = self._done(progress)
            try:
                self._check(before, progress)
                if not progress.ended:
                    for action in self._actions:
                        action.act(done, progress)
            except NotFiniteError as error:
                if self._guard is None or not self._guard.restore(error):
                    raise
                progress = self._stepper.current(self._session)
                continue
            bar.update(done, progress)
            if progress.ended or (self._hooks.stop_requested and self._strategy.halt is None):
                break
        if progress.ended and self._strategy.flush is not None:
            # Not before the data has ended: who goes on with the training goes on with what was gathered.
            with contextlib.suppress(tf.errors.OutOfRangeError):  # no worker is left to do it together with
                self._session.run(self._strategy.flush)
        if stop.number is None and self._job.is_cluster:
            self._job.steps_are_done()
            progress = replace(progress, global_step=self._stepper.current(self._session).global_step)
        for action in self._actions:
            action.finish(self._done(progress), progress)
        self._hooks.end(self._session)
        return progress

    def _is_stopped(self, stop: StopSignal, progress: Progress) -> bool:
        """Whether to do no further step; where workers go in step, they agree on it first."""
        if self._hooks.stopped_by_all:
            return True
        if self._strategy.halt is None:
            if self._alone and stop.number is None and self._job.is_asked_to_stop():
                stop.number = signal.SIGTERM
            elif self._alone and stop.number is not None and not self._asked_to_stop:
                self._asked_to_stop = True
                self._job.stop_all()
            return stop.number is not None or self._hooks.stop_requested
        if progress.halt == SIGNAL and stop.number is None:
            # Another worker was sent it, and all leave as that one does.
            stop.number = signal.SIGTERM
        wish = SIGNAL if stop.number is not None else HOOK if self._hooks.stop_requested else None
        if wish is not None and not progress.halt and not self._asked_to_stop:
            self._asked_to_stop = True
            self._strategy.request_stop(self._session, wish)
        return bool(progress.halt)

    def _done(self, progress: Progress) -> int:
        """The steps that actions go by."""
        if self._alone:
            return progress.ledger.steps
        return self._reached(progress)

    def _reached(self, progress: Progress) -> int:
        """The steps that count for the end of the run."""
        return progress.global_step if self._config.mode is ModeKeys.TRAIN else progress.ledger.steps

    def _advance(self, before: Progress) -> Progress:
        done = self._done(before)
        left = self._config.max_steps - self._reached(before)
        steps = self._steps_at_once(done, left)
        if self._strategy.next_steps is not None:
            # This call's number was agreed upon in the last one; now it is about the next one's.
            steps = before.next_steps
            self._strategy.propose(self._session, self._steps_at_once(done + steps, left - steps))
        summarise = self._summaries is not None and self._summaries.due(done + steps)
        probe = any(norm.due(done + steps) for norm in self._norms)
        short = self._seconds_per_step is not None and self._seconds_per_step < _SHORT_STEP_SECONDS
        options = _ON_CALLING_THREAD if short and self._stepper.many else None
        started = time.perf_counter()
        try:
            progress = self._stepper.advance(
                lambda fetches, feed=None: self._hooks.run(self._session, fetches, feed, options),
                steps,
                summarise,
                probe,
            )
        except tf.errors.OpError as error:
            if self._journal.failure is not None:
                self._save_before_failure()
                self._journal.check()
            if "only supports NHWC" in error.message:
                raise ValueError(_wrong_format(error)) from error
            if not isinstance(error, tf.errors.OutOfRangeError):
                raise
            return self._stepper.current(self._session, ended=True)
        taken = max(progress.ledger.steps - before.ledger.steps, 1)
        self._seconds_per_step = (time.perf_counter() - started) / taken
        return progress

    def _save_before_failure(self) -> None:
        """The data is at fault, not the variables: what was trained is kept."""
        progress = self._stepper.current(self._session)
        if self._saves is not None:
            self._saves.save(self._done(progress), progress)

    def _steps_at_once(self, done: int, left: int) -> int:
        if not self._stepper.many:
            return 1
        steps = min(left, *(action.steps_until(done) for action in self._actions))
        if self._seconds_per_step is None:
            return 1  # the first step pays for starting up and says little of the others
        return max(1, min(steps, int(SECONDS_PER_CALL / self._seconds_per_step)))

    def _check(self, before: Progress, progress: Progress) -> None:
        kept = self._saves.last_checkpoint if self._saves else None
        if progress.guard and self._guard is not None:
            named = self._guard.names[progress.guard - 1]
            raise NotFiniteError(f"Step {self._done(progress) - 1}: {named} is NaN or infinite.", kept)
        if not progress.finite:
            values = ", ".join(f"{name} {value}" for name, value in progress.ledger.last.items())
            raise NotFiniteError(f"Step {self._done(progress) - 1}: the loss is NaN or infinite ({values}).", kept)
        if progress.ended and progress.ledger.steps == 0 and self._fresh_data:
            raise ValueError("input_fn gave no data at all: its data set ended before the first batch.")
        stepped = progress.ledger.steps > before.ledger.steps
        counts = self._strategy.is_chief or not FLAGS.get("chief_inc_global_step")
        if self._config.mode is ModeKeys.TRAIN and stepped and counts and progress.global_step == before.global_step:
            raise ValueError(
                "A training step did not advance global_step: the optimizer of optimizer_fn ignores the global_step "
                "argument of apply_gradients."
            )


def _wrong_format(error: tf.errors.OpError) -> str:
    named = re.search(r"node (?:step/)?([^}]+)}}", error.message)
    layer = named.group(1) if named else error.op.name if error.op is not None else "of the error above"
    return (
        f"The layer {layer} has data_format NCHW, which TensorFlow's own kernels for the CPU do not compute. Write "
        "NHWC (channels_last), or let oneDNN compute it, which does: start the script with `moxing run`, or with "
        "TF_ENABLE_ONEDNN_OPTS=1 in the environment."
    )
