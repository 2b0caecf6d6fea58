"""Stops the training when a metric no longer improves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moxing.tensorflow.executor.hooks.evaluation import Control, EvaluationHook
from moxing.tensorflow.executor.hooks.gain import Best, higher_is_better


class EarlyStoppingHook(EvaluationHook):
    """Stops the training after `patience` evaluations in a row without improvement.

    A value improves if it is more than `min_delta` better than the best one before. Best value and count are saved with
    the checkpoints, so a resumed run decides as if it had never stopped.

    Needs `mox.run(inter_mode=mox.ModeKeys.EVAL)`.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each a mean over a batch.
      monitor: the name of the metric to monitor.
      batch_size: number of samples in a training step.
      samples_in_train: number of samples in an epoch.
      samples_in_eval: number of samples to evaluate, from the start of the data; None for all.
      evaluate_every_n_epochs: epochs between two evaluations.
      min_delta: a change of at most this much is no improvement.
      patience: number of evaluations in a row without improvement that end the training.
      prefix: start of the log line.
      mode: `max`, `min`, or `auto`: `max` for names like accuracy, auc, precision or recall, else `min`.
      restore_best: keep the best variables in `log_dir/best` and restore them at the end of the training.
      input_fn: reads the data to evaluate, instead of the `input_fn` of `mox.run`; see `EvaluationHook`.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> with tf.Graph().as_default():
      ...     hook = EarlyStoppingHook({'accuracy': tf.constant(1.0)}, 'accuracy', batch_size=32, samples_in_train=640,
      ...                              samples_in_eval=32, min_delta=0.01, patience=3)
      >>> hook.period
      20
    """

    def __init__(
        self,
        monitor_info: Mapping[str, Any],
        monitor: str,
        batch_size: int,
        samples_in_train: int,
        samples_in_eval: int | None = None,
        evaluate_every_n_epochs: float = 1,
        min_delta: float = 0.0,
        patience: int = 0,
        prefix: str = "[EarlyStopping]",
        mode: str = "auto",
        restore_best: bool = False,
        input_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(
            monitor_info, batch_size, samples_in_train, samples_in_eval, evaluate_every_n_epochs, prefix, input_fn
        )
        self._monitor = monitor
        self._check_monitor(monitor, mode, {"min_delta": min_delta})
        self._patience = self._count("patience", patience, least=0)
        self.keeps_best = self._flag("restore_best", restore_best)
        self._best = Best(higher_is_better(monitor, mode), min_delta)
        self._restored = False

    def decide(self, values: Mapping[str, float], control: Control) -> None:
        if self._best.see(values[self._monitor]):
            if self.keeps_best:
                control.keep_best()
        elif self._best.waited >= self._patience:
            self.finish(control)
            control.stop(self._why())

    def resume(self, control: Control) -> None:
        if self._best.waited and self._best.waited >= self._patience:
            self._restored = True
            control.stop(self._why())

    def finish(self, control: Control) -> None:
        if self.keeps_best and not self._restored and self._best.value is not None:
            self._restored = True
            control.restore_best()

    def state(self) -> dict[str, Any]:
        return self._best.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._best.load_state(state)

    def _why(self) -> str:
        return (
            f"{self._monitor} has not improved on {self._best.value:.3f} in {self._best.waited} evaluations"
            if self._best.value is not None
            else f"{self._monitor} is not a number"
        )
