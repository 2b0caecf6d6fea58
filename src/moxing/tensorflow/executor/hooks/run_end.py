"""Calls a function when the run ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moxing.tensorflow.executor.actions.action import Action
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.loop.progress import Progress
from moxing.tensorflow.executor.specs import RunResult


@dataclass(frozen=True)
class RunEnd:
    """How a run ended.

    Attributes:
      reason: `end`, `signal` or `error`.
      global_step: the last known step.
      log_info: the last values by name; the means if an EVAL run ended without an error.
      error: the exception, for `error`.
      result: what `mox.run` returns, for `end`.
    """

    reason: str
    global_step: int
    log_info: Mapping[str, float] = field(default_factory=dict)
    error: BaseException | None = None
    result: RunResult | None = None


def takes(function: Callable[..., Any], count: int) -> bool:
    """True if a function accepts `count` positional arguments, or does not declare its parameters.

    Example:
      >>> takes(lambda end: end, 1), takes(lambda: 1, 1), takes(print, 1)
      (True, False, True)
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


class RunEndHook(RunHook):
    """Calls a function once when the run ends: normally, by a signal, or by an error. It works in every mode.

    In a cluster, every worker calls its own. An error of the function does not hide the error that ended the run.

    Args:
      callback: called with a `RunEnd`: reason, global_step, log_info, error, result.

    Example:
      >>> hook = RunEndHook(lambda end: print(end.reason, end.global_step))
    """

    in_every_mode = True

    def __init__(self, callback: Callable[[RunEnd], Any]) -> None:
        super().__init__()
        if not callable(callback) or not takes(callback, 1):
            raise TypeError(self._wrong("callback", callback, "a function of one argument"))
        self._callback = callback
        self._seen: LastSeen | None = None

    def action(self, run: RunContext) -> LastSeen:
        self._seen = LastSeen()
        return self._seen

    def run_ended(self, reason: str, error: BaseException | None, result: RunResult | None) -> None:
        seen, self._seen = self._seen, None
        if result is not None:
            end = RunEnd(reason, result.global_step, result.log_info, error, result)
        elif seen is not None and seen.progress is not None:
            end = RunEnd(reason, seen.progress.global_step, seen.progress.ledger.last, error)
        else:
            end = RunEnd(reason, 0, {}, error)
        self._callback(end)


class LastSeen(Action):
    """Keeps the latest progress of the run."""

    def __init__(self) -> None:
        self.progress: Progress | None = None

    def act(self, done: int, progress: Progress) -> None:
        self.progress = progress

    def finish(self, done: int, progress: Progress) -> None:
        self.progress = progress
