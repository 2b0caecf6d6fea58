"""Evaluations between the training steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moxing.tensorflow.executor.actions.action import NEVER, Action, until_count
from moxing.tensorflow.executor.evaluation.control import RunControl
from moxing.tensorflow.executor.evaluation.summaries import EvaluationSummaries
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.loop.progress import Progress

#: Evaluates a number of samples (None: all); returns the metrics by index of the hook, None after a signal.
Evaluate = Callable[[int | None], "dict[int, dict[str, float]] | None"]


@dataclass
class _Entry:
    """A hook, the function that evaluates for it, and the training step of its last evaluation."""

    hook: EvaluationHook
    index: int
    evaluate: Evaluate
    evaluated: int = 0

    @property
    def key(self) -> str:
        return f"{self.index}/{type(self.hook).__name__}"


class EvaluateAction(Action):
    """Evaluates when a hook is due, and gives the hook the metrics.

    Args:
      datasets: for every dataset the hooks that look at it, by index, and the function that evaluates it.
      control: what hooks can do to the run.
      actions: notified of the time that evaluations take.
      summaries: writes the metrics as curves.
      asynchronous: other workers advance `global_step` between two looks at it, so a period may be passed over.
    """

    def __init__(
        self,
        datasets: Sequence[tuple[Mapping[int, EvaluationHook], Evaluate]],
        control: RunControl,
        actions: Sequence[Action],
        summaries: EvaluationSummaries | None = None,
        asynchronous: bool = False,
    ) -> None:
        entries = [_Entry(hook, index, evaluate) for hooks, evaluate in datasets for index, hook in hooks.items()]
        self._entries = sorted(entries, key=lambda entry: entry.index)
        self._control, self._actions, self._summaries = control, actions, summaries
        self._asynchronous = asynchronous

    def resume(self, states: Mapping[str, Any], done: int) -> None:
        """Restores the state of the hooks, and repeats an evaluation that a signal interrupted.

        Args:
          states: what `state` returned when the checkpoint was written.
          done: the training steps done.
        """
        for entry in self._entries:
            state = states.get(entry.key)
            entry.evaluated = int(state["evaluated"]) if state is not None else done
            if state is not None:
                entry.hook.load_state(state["state"])
                entry.hook.resume(self._control)
        if states and not self._control.stopping:
            self._run(done)

    def state(self) -> Mapping[str, Any]:
        return {entry.key: {"evaluated": entry.evaluated, "state": entry.hook.state()} for entry in self._entries}

    def steps_until(self, done: int) -> int:
        return NEVER if self._asynchronous else min(until_count(done, entry.hook.period) for entry in self._entries)

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
        return step // period > entry.evaluated // period and (self._asynchronous or step % period == 0)

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
            self._control.at_step(step - 1)
            if self._summaries is not None:
                self._summaries.write(entry.index, step - 1, values[entry.index])
            entry.hook.evaluated(step - 1, values[entry.index], self._control)
        if due:
            seconds = time.perf_counter() - started
            for action in self._actions:
                action.pause(seconds)


class FollowAction(Action):
    """Carries out on an asynchronous worker what the chief has decided after an evaluation.

    Args:
      control: what can be done to the run.
      announced: returns the decisions of the chief since the last call.
    """

    def __init__(self, control: RunControl, announced: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        self._control, self._announced = control, announced

    def act(self, done: int, progress: Progress) -> None:
        for decision in self._announced():
            if "factor" in decision:
                self._control.scale_learning_rate(decision["factor"])
            if "stop" in decision:
                self._control.stop(decision["stop"])
