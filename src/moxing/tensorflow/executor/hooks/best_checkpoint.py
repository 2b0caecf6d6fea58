"""Keeping the best checkpoint beside the newest ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moxing.tensorflow.executor.hooks.evaluation import Control, EvaluationHook
from moxing.tensorflow.executor.hooks.gain import Best, higher_is_better


class BestCheckpointHook(EvaluationHook):
    """Keeps the best checkpoint by a metric of the evaluation data in `log_dir/best`.

    A checkpoint is written after every evaluation that is more than `min_delta` better than the best one before; the
    best value goes with the run's checkpoints, so that a run that goes on compares with it.

    Needs `mox.run(inter_mode=mox.ModeKeys.EVAL, log_dir=...)`.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each the mean over a batch.
      monitor: the name of the one that decides.
      batch_size: how many samples a training step takes.
      samples_in_train: how many samples an epoch has.
      samples_in_eval: how many samples an evaluation takes, from the start of the data; None: all.
      evaluate_every_n_epochs: the period.
      min_delta: what a gain must exceed.
      mode: `max`, `min`, or `auto`: `max` for names such as accuracy, auc, precision, recall, else `min`.
      keep: how many checkpoints stay: those of the last gains.
      directory: where in `log_dir` they stand.
      prefix: begins the line.
      input_fn: gives other data than `mox.run`'s `input_fn`, see `EvaluationHook`.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> with tf.Graph().as_default():
      ...     hook = BestCheckpointHook({'accuracy': tf.constant(1.0)}, 'accuracy', batch_size=32, samples_in_train=640)
      >>> hook.period, hook.directory
      (20, 'best')
    """

    keeps_best = True

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


def check_directories(hooks: Sequence[EvaluationHook]) -> None:
    """Raises where two hooks would keep their best checkpoints in one directory."""
    taken = [hook.directory if isinstance(hook, BestCheckpointHook) else "best" for hook in hooks if hook.keeps_best]
    own = [hook.directory for hook in hooks if isinstance(hook, BestCheckpointHook)]
    for directory in own:
        if taken.count(directory) > 1:
            raise ValueError(
                f"mox.BestCheckpointHook(directory={directory!r}): another hook keeps its best checkpoint there too, "
                "by a metric of its own; give another name."
            )
