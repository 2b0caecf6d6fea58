"""Calls `output_fn`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


class OutputHook(tf.train.SessionRunHook):
    """Collects `output_info` of every step and calls `output_fn` with a list of dicts every n steps, and at the end.

    The dicts are in the order of the steps, and within a step in the order of the towers.

    Args:
      output_fn: the user's function.
      output_info: for every tower the tensors by name.
      every: number of steps per call.
      present: for every tower 0 if its batch is padding, whose outputs are dropped; empty where there is none.
    """

    def __init__(
        self,
        output_fn: Callable[..., Any],
        output_info: Sequence[Mapping[str, tf.Tensor]],
        every: int,
        present: Sequence[tf.Tensor] = (),
    ) -> None:
        for index, tower in enumerate(output_info):
            if set(tower) != set(output_info[0]):
                raise ValueError(
                    f"model_fn returned the output_info {sorted(tower)} for tower {index}, and "
                    f"{sorted(output_info[0])} for the first one: they must be the same."
                )
        self._output_fn, self._every = output_fn, every
        self._fetches = {"outputs": [dict(tower) for tower in output_info], "present": list(present)}
        self._collected: list[dict[str, Any]] = []
        self._steps = 0

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        outputs, present = run_values.results["outputs"], run_values.results["present"]
        self._collected.extend(itertools.compress(outputs, present) if present else outputs)
        self._steps += 1
        if self._steps == self._every:
            self._deliver()

    def end(self, session: tf.Session) -> None:
        if self._collected:
            self._deliver()

    def _deliver(self) -> None:
        outputs, self._collected, self._steps = self._collected, [], 0
        self._output_fn(outputs)
