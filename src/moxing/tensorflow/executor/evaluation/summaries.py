"""Metrics of evaluations inside training, as curves beside those of the training."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from moxing.tensorflow.executor.actions.summaries import EventFile
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook


class EvaluationSummaries:
    """Writes the means of every evaluation into sub directories of `log_dir`.

    All hooks share one, `eval` for instance, as long as a name means the same to them: the same tensor over the same
    number of samples. The next ones get `eval_1`, `eval_2` and so on.

    Args:
      log_dir: of the run.
      mode: the `inter_mode`, in small letters.
      hooks: whose metrics they are.
    """

    def __init__(self, log_dir: str, mode: str, hooks: Sequence[EvaluationHook]) -> None:
        directories = directories_of([_meanings(hook) for hook in hooks], mode)
        files = {name: EventFile(os.path.join(log_dir, name)) for name in directories}
        self._files = [files[name] for name in directories]
        self._written: dict[tuple[EventFile, str], int] = {}

    def write(self, number: int, step: int, values: Mapping[str, float]) -> None:
        """Takes the metrics of hook `number` after training step `step`."""
        events = self._files[number]
        # Two hooks with the same metric make one point of a curve.
        new = {name: value for name, value in values.items() if self._written.get((events, name)) != step}
        if new:
            events.add_scalars(new, step)
            self._written.update({(events, name): step for name in new})

    def close(self) -> None:
        for events in self._files:
            events.close()


def _meanings(hook: EvaluationHook) -> dict[str, Any]:
    return {name: (id(value), hook.samples_in_eval) for name, value in hook.monitor_info.items()}


def directories_of(meanings: Sequence[Mapping[str, Any]], mode: str) -> list[str]:
    """For every hook the sub directory of its metrics.

    Args:
      meanings: for every hook what its names stand for.
      mode: the name of the first directory.

    Example:
      >>> directories_of([{'loss': 1, 'accuracy': 2}, {'loss': 1}, {'loss': 3}, {'auc': 4}], 'eval')
      ['eval', 'eval', 'eval_1', 'eval']
    """
    taken: list[dict[str, Any]] = []
    chosen = []
    for names in meanings:
        place = next(
            (
                index
                for index, others in enumerate(taken)
                if all(others.get(name, meaning) == meaning for name, meaning in names.items())
            ),
            len(taken),
        )
        if place == len(taken):
            taken.append({})
        taken[place].update(names)
        chosen.append(f"{mode}_{place}" if place else mode)
    return chosen
