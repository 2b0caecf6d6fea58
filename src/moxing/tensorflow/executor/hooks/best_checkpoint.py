"""Keeps the best checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from moxing.tensorflow.executor.hooks.evaluation import Control, EvaluationHook
from moxing.tensorflow.executor.hooks.gain import Best, higher_is_better


class BestCheckpointHook(EvaluationHook):
    """Keeps the best checkpoint by a metric of the evaluation data in `log_dir/best`.

    Writes a checkpoint after every evaluation that improves on the best value by more than `min_delta`. The best value
    is saved with the checkpoints of the run, so a resumed run compares with it.

    Needs `mox.run(inter_mode=mox.ModeKeys.EVAL, log_dir=...)`.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each a mean over a batch.
      monitor: the name of the metric to monitor.
      batch_size: number of samples in a training step.
      samples_in_train: number of samples in an epoch.
      samples_in_eval: number of samples to evaluate, from the start of the data; None for all.
      evaluate_every_n_epochs: epochs between two evaluations.
      min_delta: a change of at most this much is no improvement.
      mode: `max`, `min`, or `auto`: `max` for names like accuracy, auc, precision or recall, else `min`.
      keep: number of best checkpoints to keep, the latest ones.
      directory: their directory in `log_dir`.
      prefix: start of the log line.
      input_fn: reads the data to evaluate, instead of the `input_fn` of `mox.run`; see `EvaluationHook`.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> with tf.Graph().as_default():
      ...     hook = BestCheckpointHook({'accuracy': tf.constant(1.0)}, 'accuracy', batch_size=32, samples_in_train=640)
      >>> hook.period, hook.directory
      (20, 'best')
    """

    keeps_best = True
    shares_directory = False

    def __init__(
        self,
        monitor_info: Mapping[str, Any],
        monitor: str,
        batch_size: int,
        samples_in_train: int,
        samples_in_eval: int | None = None,
        evaluate_every_n_epochs: float = 1,
        min_delta: float = 0.0,
        mode: str = "auto",
        keep: int = 1,
        directory: str = "best",
        prefix: str = "[BestCheckpoint]",
        input_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(
            monitor_info, batch_size, samples_in_train, samples_in_eval, evaluate_every_n_epochs, prefix, input_fn
        )
        self._check_monitor(monitor, mode, {"min_delta": min_delta})
        if not isinstance(directory, str) or not directory or os.path.basename(directory) != directory:
            raise ValueError(self._wrong("directory", directory, "one directory name, without '/'"))
        self._monitor, self._keep, self.directory = monitor, self._count("keep", keep), directory
        self._best = Best(higher_is_better(monitor, mode), min_delta)

    def decide(self, values: Mapping[str, float], control: Control) -> None:
        if self._best.see(values[self._monitor]):
            control.keep_best(self.directory, self._keep)

    def state(self) -> dict[str, Any]:
        return self._best.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._best.load_state(state)
