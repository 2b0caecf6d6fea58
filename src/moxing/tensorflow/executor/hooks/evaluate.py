"""Evaluations between the training steps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoint import Keeper
from moxing.tensorflow.executor.hooks.action import until_count
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.hooks.evaluation_summaries import EvaluationSummaries
from moxing.tensorflow.executor.loop import Progress

#: Beside the checkpoints: the best variables.
BEST = "best"


class EvaluateAction:
    """Evaluates when a hook is due, and tells the hook.

    Args:
      hooks: the hooks.
      evaluate: gives for every hook its metrics over a number of samples; None when a signal came.
      control: what hooks can do to the run.
      pause: told how many seconds were not training.
      summaries: writes the metrics as curves, where they are written.
    """

    def __init__(
        self,
        hooks: Sequence[EvaluationHook],
        evaluate: Callable[[int | None], list[dict[str, float]] | None],
        control: RunControl,
        pause: Callable[[float], None],
        summaries: EvaluationSummaries | None = None,
    ) -> None:
        self._summaries = summaries
        self._hooks, self._evaluate, self._control, self._pause = hooks, evaluate, control, pause
        self._evaluated = [0] * len(hooks)

    def resume(self, states: Mapping[str, Any], done: int) -> None:
        """Goes on from what hooks of an earlier run remembered; makes up for an evaluation that a signal cut off."""
        for number, hook in enumerate(self._hooks):
            state = states.get(_key(number, hook))
            if state is None:
                continue
            hook.load_state(state["state"])
            self._evaluated[number] = int(state["evaluated"])
            hook.resume(self._control)
        if states and not self._control.stopping:
            self._run(done)

    def states(self) -> dict[str, Any]:
        """What the hooks of a later run must know."""
        return {
            _key(number, hook): {"evaluated": self._evaluated[number], "state": hook.state()}
            for number, hook in enumerate(self._hooks)
        }

    def steps_until(self, done: int) -> int:
        return min(until_count(done, hook.period) for hook in self._hooks)

    def act(self, done: int, progress: Progress) -> None:
        self._run(done)

    def finish(self, done: int, progress: Progress) -> None:
        if self._summaries is not None:
            self._summaries.close()
        if not self._control.by_signal:
            for hook in self._hooks:
                hook.finish(self._control)

    def _run(self, done: int) -> None:
        due = [
            number
            for number, hook in enumerate(self._hooks)
            if done and done % hook.period == 0 and self._evaluated[number] != done
        ]
        started = time.perf_counter()
        results: dict[int | None, list[dict[str, float]] | None] = {}
        for number in due:
            samples = self._hooks[number].samples_in_eval
            if samples not in results:
                results[samples] = self._evaluate(samples)
        for number in due:
            values = results[self._hooks[number].samples_in_eval]
            if values is not None:
                self._evaluated[number] = done
                self._control.step = done - 1
                if self._summaries is not None:
                    self._summaries.write(number, done - 1, values[number])
                self._hooks[number].evaluated(done - 1, values[number], self._control)
        if due:
            self._pause(time.perf_counter() - started)


class RunControl:
    """What a hook does to the run, see `Control`.

    Args:
      session: the run's.
      log_dir: where the best variables are kept; None: nowhere.
      factor: the variable that the learning rate is multiplied with, where there is one.
      restored: operations to be run after the variables were loaded.
      end: ends the training.
      changed: told that the variables are others now.
      by_signal: whether a signal ends the run.
    """

    def __init__(
        self,
        session: tf.Session,
        log_dir: str | None,
        factor: tf.Variable | None,
        restored: Sequence[tf.Operation],
        end: Callable[[], None],
        changed: Callable[[], None],
        by_signal: Callable[[], bool],
    ) -> None:
        self._session, self._restored, self._end = session, list(restored), end
        self._changed, self._by_signal = changed, by_signal
        self._log_dir = log_dir
        self._directory = os.path.join(log_dir, BEST) if log_dir else None
        self._keepers: dict[str, Keeper] = {}
        self._saver = (
            tf.train.Saver([v for v in tf.global_variables() if v.op.name != "global_step"], max_to_keep=1)
            if log_dir
            else None
        )
        self._factor, self._new_factor = factor, tf.placeholder(tf.float32, [], name="moxing/new_factor")
        self._scale = None if factor is None else factor.assign(self._new_factor).op
        self.step = 0
        self.stopping = False

    @property
    def by_signal(self) -> bool:
        """True when a signal ends the run: it will go on later."""
        return self._by_signal()

    def stop(self, why: str) -> None:
        tf.logging.info("Training stops early: %s.", why)
        self.stopping = True
        self._end()

    def scale_learning_rate(self, factor: float) -> None:
        if self._scale is None:
            raise ValueError(
                "model_fn returned the hook that lowers the learning rate in inter_mode only: it must be there in mode "
                "TRAIN too."
            )
        self._session.run(self._scale, {self._new_factor: factor})
        tf.logging.info("The learning rate is multiplied by %g from here on.", factor)

    def keep_best(self, directory: str = BEST, most: int = 1) -> None:
        if self._log_dir is None:
            return
        if directory not in self._keepers:
            self._keepers[directory] = Keeper(os.path.join(self._log_dir, directory), None, most)
        self._keepers[directory].save(self._session, self.step + 1, elements=0)

    def restore_best(self) -> None:
        found = tf.train.latest_checkpoint(self._directory) if self._directory else None
        if self._saver is None or found is None:
            tf.logging.warning("The best variables are not in %s any more: the last ones stay.", self._directory)
            return
        self._saver.restore(self._session, found)
        self._session.run(self._restored)
        self._changed()
        tf.logging.info("The variables are the best ones again, those of %s.", found)


def _key(number: int, hook: EvaluationHook) -> str:
    return f"{number}/{type(hook).__name__}"
