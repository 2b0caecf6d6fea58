"""Evaluations between the training steps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoint import Keeper
from moxing.tensorflow.executor.hooks.action import NEVER, until_count
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.hooks.evaluation_summaries import EvaluationSummaries
from moxing.tensorflow.executor.loop import Progress

#: Beside the checkpoints: the best variables.
BEST = "best"


#: Gives by place of the hook its metrics over a number of samples; None when a signal came.
Evaluate = Callable[[int | None], "dict[int, dict[str, float]] | None"]


@dataclass
class _Entry:
    """A hook, what evaluates for it, and the training step after which that was last done."""

    hook: EvaluationHook
    place: int
    evaluate: Evaluate
    evaluated: int = 0

    @property
    def key(self) -> str:
        return f"{self.place}/{type(self.hook).__name__}"


class EvaluateAction:
    """Evaluates when a hook is due, and tells the hook.

    Args:
      sets: for every set of data the hooks that look at it, by their places, and what evaluates.
      control: what hooks can do to the run.
      pause: told how many seconds were not training.
      summaries: writes the metrics as curves, where they are written.
      apart: other workers bring `global_step` on between two looks at it: a period may end in between.
    """

    def __init__(
        self,
        sets: Sequence[tuple[Mapping[int, EvaluationHook], Evaluate]],
        control: RunControl,
        pause: Callable[[float], None],
        summaries: EvaluationSummaries | None = None,
        apart: bool = False,
    ) -> None:
        entries = [_Entry(hook, place, evaluate) for hooks, evaluate in sets for place, hook in hooks.items()]
        self._entries = sorted(entries, key=lambda entry: entry.place)
        self._control, self._pause, self._summaries, self._apart = control, pause, summaries, apart

    def resume(self, states: Mapping[str, Any], done: int) -> None:
        """Goes on from what hooks of an earlier run remembered; makes up for an evaluation that a signal cut off."""
        for entry in self._entries:
            state = states.get(entry.key)
            entry.evaluated = int(state["evaluated"]) if state is not None else done
            if state is not None:
                entry.hook.load_state(state["state"])
                entry.hook.resume(self._control)
        if states and not self._control.stopping:
            self._run(done)

    def states(self) -> dict[str, Any]:
        """What the hooks of a later run must know."""
        return {entry.key: {"evaluated": entry.evaluated, "state": entry.hook.state()} for entry in self._entries}

    def steps_until(self, done: int) -> int:
        return NEVER if self._apart else min(until_count(done, entry.hook.period) for entry in self._entries)

    def act(self, done: int, progress: Progress) -> None:
        self._run(progress.global_step)

    def finish(self, done: int, progress: Progress) -> None:
        if self._summaries is not None:
            self._summaries.close()
        if not self._control.by_signal:
            for entry in self._entries:
                entry.hook.finish(self._control)
            self._control.finish()

    def _is_due(self, entry: _Entry, step: int) -> bool:
        period = entry.hook.period
        return step // period > entry.evaluated // period and (self._apart or step % period == 0)

    def _run(self, step: int) -> None:
        due = [entry for entry in self._entries if self._is_due(entry, step)]
        started = time.perf_counter()
        results: dict[Any, dict[int, dict[str, float]] | None] = {}
        for entry in due:
            key = entry.evaluate, entry.hook.samples_in_eval
            if key not in results:
                results[key] = entry.evaluate(entry.hook.samples_in_eval)
            values = results[key]
            if values is None:
                self._control.leave()
                break
            entry.evaluated = step
            self._control.step = step - 1
            if self._summaries is not None:
                self._summaries.write(entry.place, step - 1, values[entry.place])
            entry.hook.evaluated(step - 1, values[entry.place], self._control)
        if due:
            self._pause(time.perf_counter() - started)


class FollowAction:
    """Does on a worker that does steps of its own what the chief has decided after an evaluation.

    Args:
      control: what can be done to the run.
      announced: gives what the chief has told since the last time.
    """

    def __init__(self, control: RunControl, announced: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        self._control, self._announced = control, announced

    def steps_until(self, done: int) -> int:
        return NEVER

    def act(self, done: int, progress: Progress) -> None:
        for what in self._announced():
            if "factor" in what:
                self._control.scale_learning_rate(what["factor"])
            if "stop" in what:
                self._control.stop(what["stop"])

    def finish(self, done: int, progress: Progress) -> None:
        """Nothing is left to do."""


class RunControl:
    """What a hook does to the run, see `Control`.

    Args:
      session: the run's.
      log_dir: where the best variables are kept; None: nowhere, or the chief keeps them.
      factor: the variable that the learning rate is multiplied with, where there is one.
      restored: operations to be run after the variables were loaded, by all workers that go in step.
      end: ends the training.
      changed: told that the variables are others now.
      by_signal: whether a signal ends the run.
      announce: tells workers that do steps of their own.
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
        announce: Callable[[dict[str, Any]], None],
    ) -> None:
        self._session, self._restored, self._end = session, list(restored), end
        self._changed, self._by_signal, self._announce = changed, by_signal, announce
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
        self._restores = False
        self.step = 0
        self.stopping = False

    @property
    def by_signal(self) -> bool:
        """True when a signal ends the run: it will go on later."""
        return self._by_signal()

    def stop(self, why: str) -> None:
        tf.logging.info("Training stops early: %s.", why)
        self.stopping = True
        self._announce({"stop": why})
        self._end()

    def leave(self) -> None:
        """A signal ends the run here: the evaluation comes when it goes on."""
        self._end()

    def scale_learning_rate(self, factor: float) -> None:
        if self._scale is None:
            raise ValueError(
                "model_fn returned the hook that lowers the learning rate in inter_mode only: it must be there in mode "
                "TRAIN too."
            )
        self._session.run(self._scale, {self._new_factor: factor})
        tf.logging.info("The learning rate is now %g times that of the optimizer.", factor)
        self._announce({"factor": factor})

    def keep_best(self, directory: str = BEST, most: int = 1) -> None:
        if self._log_dir is None:
            return
        if directory not in self._keepers:
            self._keepers[directory] = Keeper(os.path.join(self._log_dir, directory), None, most)
        self._keepers[directory].save(self._session, self.step + 1, elements=0)

    def restore_best(self) -> None:
        self._restores = True

    def finish(self) -> None:
        """Restores the best variables if a hook wants that: not before all workers have done their last step."""
        if not self._restores:
            return
        found = tf.train.latest_checkpoint(self._directory) if self._directory else None
        if self._saver is not None and found is not None:
            self._saver.restore(self._session, found)
            tf.logging.info("The variables are the best ones again, those of %s.", found)
        elif self._directory is not None:
            tf.logging.warning("The best variables are not in %s any more: the last ones stay.", self._directory)
        self._session.run(self._restored)
        self._changed()
