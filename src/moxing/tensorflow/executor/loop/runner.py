"""Runs the steps: how many per call, what happens between calls, and when the run is over."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import replace

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.bad_samples import BadSampleLog
from moxing.tensorflow.executor.actions.action import Action, NotFiniteError
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.loop.progress import Progress
from moxing.tensorflow.executor.loop.progress_bar import Bar
from moxing.tensorflow.executor.loop.step_loop import ON_CALLING_THREAD, SECONDS_PER_CALL, SHORT_STEP_SECONDS, Stepper
from moxing.tensorflow.parallel.train_step import HOOK, SIGNAL

#: How TensorFlow says that a label is too large or negative.
_OUTSIDE = re.compile(r"label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)")


class Runner:
    """Drives the steps of one run.

    Args:
      run: the open run.
      stepper: does the steps.
      actions: what the run does between steps, in this order.
      bad_samples: the log of bad samples; it keeps the error of a dataset that failed.
    """

    def __init__(self, run: RunContext, stepper: Stepper, actions: Sequence[Action], bad_samples: BadSampleLog) -> None:
        self._run, self._stepper, self._actions, self._bad_samples = run, stepper, actions, bad_samples
        self._session, self._hooks, self._checks = run.session, run.hooks, run.step.checks
        self._seconds_per_step: float | None = None
        self._asked_to_stop = False

    def run(self, bar: Bar | None = None) -> Progress:
        """Runs to the last step, the end of the data, a hook's request to stop, or a signal.

        Args:
          bar: shows the progress.
        """
        progress = self._run.start
        while self._reached(progress) < self._run.config.max_steps and not self._agree_on_stop(progress):
            before = progress
            progress = self._advance(before)
            done = self._done(progress)
            try:
                self._check(before, progress)
                if not progress.ended:
                    for action in self._actions:
                        action.act(done, progress)
            except NotFiniteError as error:
                if not any(action.recover(error) for action in self._actions):
                    raise
                progress = self._stepper.current(self._session)
                continue
            if bar is not None:
                bar.update(done, progress)
            if progress.ended:
                break
        return self._finish(progress)

    def _finish(self, progress: Progress) -> Progress:
        train, job = self._run.step.train, self._run.job
        if progress.ended and train is not None and train.flush is not None:
            # Only at the end of the data: a resumed run continues with the accumulated gradients.
            with contextlib.suppress(tf.errors.OutOfRangeError):  # the other workers have left
                self._session.run(train.flush)
        if self._run.asynchronous:
            self._pass_on_stop()
        if train is not None and train.leave is not None:
            self._session.run(train.leave)
        if self._run.stop.number is None and job.is_cluster:
            job.wait_for_last_steps()
            progress = replace(progress, global_step=self._stepper.current(self._session).global_step)
        for action in self._actions:
            action.finish(self._done(progress), progress)
        self._hooks.end(self._session)
        return progress

    def _agree_on_stop(self, progress: Progress) -> bool:
        """Whether to do no further step. A synchronous worker that wants to stop asks the others first."""
        if self._hooks.stopped_by_all:
            return True
        if self._checks.halt is None:
            if self._run.asynchronous:
                self._pass_on_stop()
            return self._run.stop.number is not None or self._hooks.stop_requested
        stop = self._run.stop
        if progress.halt == SIGNAL and stop.number is None:
            # Another worker got the signal; all leave the same way.
            stop.number = signal.SIGTERM
        reason = SIGNAL if stop.number is not None else HOOK if self._hooks.stop_requested else None
        if reason is not None and not progress.halt and not self._asked_to_stop:
            self._asked_to_stop = True
            self._run.step.strategy.request_stop(self._session, reason)
        return bool(progress.halt)

    def _pass_on_stop(self) -> None:
        """Passes a signal on to the other asynchronous workers, and takes over theirs."""
        stop, job = self._run.stop, self._run.job
        if stop.number is None and job.stop_requested():
            stop.number = signal.SIGTERM
        elif stop.number is not None and not self._asked_to_stop:
            self._asked_to_stop = True
            job.stop_all()

    def _done(self, progress: Progress) -> int:
        """The steps that actions count: `global_step`, or this worker's own steps where others advance it, too."""
        return progress.ledger.steps if self._run.asynchronous else self._reached(progress)

    def _reached(self, progress: Progress) -> int:
        """The steps that count for the end of the run."""
        return progress.global_step if self._run.training else progress.ledger.steps

    def _advance(self, before: Progress) -> Progress:
        """Does the steps of one `session.run`."""
        done = self._done(before)
        left = self._run.config.max_steps - self._reached(before)
        steps = self._steps_at_once(done, left)
        if self._checks.next_steps is not None:
            # The workers agreed on this call's number in the last one; now they agree on the next.
            steps = before.next_steps
            self._run.step.strategy.propose(self._session, self._steps_at_once(done + steps, left - steps))
        wanted = {aside for action in self._actions for aside in action.wants(done + steps)}
        short = self._seconds_per_step is not None and self._seconds_per_step < SHORT_STEP_SECONDS
        options = ON_CALLING_THREAD if short and self._stepper.many else None
        started = time.perf_counter()
        try:
            progress = self._stepper.advance(
                lambda fetches, feed=None: self._hooks.run(self._session, fetches, feed, options), steps, wanted
            )
        except tf.errors.OpError as error:
            return self._handle_step_error(error)
        taken = max(progress.ledger.steps - before.ledger.steps, 1)
        # Not 0, also if the clock stands still.
        self._seconds_per_step = max(time.perf_counter() - started, 1e-9) / taken
        return progress

    def _steps_at_once(self, done: int, left: int) -> int:
        if not self._stepper.many or self._seconds_per_step is None:
            return 1  # the time of a step is not known yet
        steps = min(left, *(action.steps_until(done) for action in self._actions))
        return max(1, min(steps, int(SECONDS_PER_CALL / self._seconds_per_step)))

    def _handle_step_error(self, error: tf.errors.OpError) -> Progress:
        """The progress at the end of the data. Raises the error if it is another one."""
        if self._bad_samples.failure is not None:
            # The data failed, the variables are good: keep what was trained.
            progress = self._stepper.current(self._session)
            for action in self._actions:
                action.data_failed(self._done(progress), progress)
            self._bad_samples.check()
        if "only supports NHWC" in error.message:
            raise ValueError(_wrong_format(error)) from error
        if outside := _OUTSIDE.search(error.message):
            raise ValueError(_wrong_label(outside)) from error
        if not isinstance(error, tf.errors.OutOfRangeError):
            raise error
        return self._stepper.current(self._session, ended=True)

    def _check(self, before: Progress, progress: Progress) -> None:
        step, last = self._run.step, self._done(progress) - 1
        checkpoint = self._run.keeper.last if self._run.keeper else None
        if progress.guard:
            raise NotFiniteError(f"Step {last}: {step.guarded[progress.guard - 1]} is NaN or infinite.", checkpoint)
        if not progress.finite:
            values = ", ".join(f"{name} {value}" for name, value in progress.ledger.last.items())
            raise NotFiniteError(f"Step {last}: the loss is NaN or infinite ({values}).", checkpoint)
        if progress.ended and progress.ledger.steps == 0:
            if step.inputs.starts_over:
                raise ValueError("input_fn returned no data: its dataset ended before the first batch.")
            if self._run.training:
                self._warn_of_short_data()
        stepped = progress.ledger.steps > before.ledger.steps
        counts = step.strategy.is_chief or not FLAGS.get("chief_inc_global_step")
        if self._run.training and stepped and counts and progress.global_step == before.global_step:
            raise ValueError(
                "A training step did not advance global_step: the optimizer of optimizer_fn ignores the global_step "
                "argument of apply_gradients."
            )

    def _warn_of_short_data(self) -> None:
        position = self._run.position
        reached = position.samples[0] if position.samples else position.elements
        size = self._run.step.inputs.elements_in(self._session)
        tf.logging.warning(
            "Nothing was trained: the checkpoint %s continues after %d samples of the data, and the data now ends "
            "before (%s). The next run reads it from the start. If samples were lost, put them back first.",
            self._run.keeper.last if self._run.keeper else "of this run",
            reached,
            "its size is not known" if size is None else f"{size} samples",
        )


def _wrong_label(outside: re.Match[str]) -> str:
    return (
        f"A label is {outside[1]}, and the loss of model_fn has {outside[2]} classes: expected labels from 0 to "
        f"{int(outside[2]) - 1}. Correct the labels or the number of classes. With "
        "ImageClassificationTFRecordMetadata(num_classes=...) such records are skipped and listed."
    )


def _wrong_format(error: tf.errors.OpError) -> str:
    named = re.search(r"node (?:step/)?([^}]+)}}", error.message)
    layer = named.group(1) if named else error.op.name if error.op is not None else "of the error above"
    return (
        f"The layer {layer} has data_format NCHW, which TensorFlow's own kernels for the CPU do not compute. Write "
        "NHWC (channels_last), or let oneDNN compute it: start the script with `moxing run`, or with "
        "TF_ENABLE_ONEDNN_OPTS=1 in the environment."
    )
