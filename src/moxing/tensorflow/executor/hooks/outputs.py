"""Handing outputs to `output_fn`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf


class OutputHook(tf.train.SessionRunHook):
    """Collects `output_info` of every step and calls `output_fn` with a list of dicts every n steps, and at the end.

    Args:
      output_fn: the user's function.
      output_info: tensors by name.
      every: how many steps make one call.
    """

    def __init__(self, output_fn: Callable[..., Any], output_info: Mapping[str, tf.Tensor], every: int) -> None:
        self._output_fn, self._output_info, self._every = output_fn, dict(output_info), every
        self._collected: list[dict[str, Any]] = []

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs(self._output_info)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._collected.append(run_values.results)
        if len(self._collected) == self._every:
            self._deliver()

    def end(self, session: tf.Session) -> None:
        if self._collected:
            self._deliver()

    def _deliver(self) -> None:
        outputs, self._collected = self._collected, []
        self._output_fn(outputs)
