"""`tf.contrib.learn.monitors`: hooks of a training, under their old names, and `ValidationMonitor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

__all__ = ["PrintTensor", "ValidationMonitor", "replace_monitors_with_hooks"]

_NAMES = _lazy.names(
    (
        "tensorflow.compat.v1:train",
        "CheckpointSaver=CheckpointSaverHook NanLoss=NanTensorHook StepCounter=StepCounterHook "
        "StopAtStep=StopAtStepHook SummarySaver=SummarySaverHook LoggingTensorHook SessionRunHook "
        "BaseMonitor=SessionRunHook EveryN=SessionRunHook",
    ),
)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


def PrintTensor(tensor_names: Any, every_n: int = 100, first_n: int = 1) -> Any:
    """Logs tensors by name every `every_n` steps: a `tf.train.LoggingTensorHook`, which logs the first step too."""
    if first_n != 1:
        tf.logging.warning("PrintTensor(first_n=%d) has no effect: every %d steps are logged.", first_n, every_n)
    return tf.train.LoggingTensorHook(tensor_names, every_n_iter=every_n)


class ValidationMonitor(tf.train.SessionRunHook):
    """Evaluates the newest checkpoint while the model is trained, and stops the training when it gets no better.

    It needs checkpoints more often than it evaluates: `RunConfig(save_checkpoints_steps=...)`.

    Args:
      x: an array to evaluate on, with its targets `y`; or `input_fn`.
      y: the targets.
      input_fn: returns the data.
      batch_size: of the arrays.
      eval_steps: number of batches; all by default.
      every_n_steps: how many steps are between two evaluations.
      metrics: further metrics, as `Estimator.evaluate` takes them.
      hooks: hooks of the evaluation.
      early_stopping_rounds: the training ends when the metric has not been better for so many steps.
      early_stopping_metric: name of the metric.
      early_stopping_metric_minimize: whether less is better.
      name: of the evaluation.

    Attributes:
      early_stopped: whether the monitor ended the training.
      best_step: the step of the best evaluation.
      best_value: its metric.
      best_metrics: all its metrics.
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Mapping[Any, Any] | None = None,
        hooks: Any = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
    ) -> None:
        if x is None and input_fn is None:
            raise ValueError("ValidationMonitor: expected x or input_fn, got neither.")
        self._data = {"x": x, "y": y, "input_fn": input_fn, "batch_size": batch_size}
        self._options = {"steps": eval_steps, "metrics": metrics, "hooks": hooks, "name": name}
        self._every = every_n_steps
        self._patience = early_stopping_rounds
        self._metric, self._minimize = early_stopping_metric, early_stopping_metric_minimize
        self._estimator: Any = None
        self._evaluated: str | None = None
        self._next_step: int | None = None
        self.early_stopped = False
        self.best_step: int | None = None
        self.best_value: float | None = None
        self.best_metrics: dict[str, Any] | None = None

    def set_estimator(self, estimator: Any) -> None:
        """Sets the estimator to evaluate; `fit` calls it."""
        self._estimator = estimator

    def begin(self) -> None:
        """Finds the global step."""
        if self._estimator is None:
            raise ValueError("ValidationMonitor: pass it to fit(monitors=[...]) of an estimator of tf.contrib.learn.")
        self._step = tf.train.get_global_step()

    def before_run(self, run_context: Any) -> Any:
        """Asks for the global step."""
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Evaluates if it is time and there is a new checkpoint."""
        step = int(run_values.results)
        if self._next_step is not None and step < self._next_step:
            return
        self._next_step = step + self._every
        if self._evaluate(step):
            self.early_stopped = True
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Evaluates the last checkpoint."""
        self._evaluate(int(session.run(self._step)))

    def _evaluate(self, step: int) -> bool:
        """Returns True if the training shall end."""
        newest = tf.train.latest_checkpoint(self._estimator.model_dir)
        if newest is None or newest == self._evaluated:
            return False
        self._evaluated = newest
        found = self._estimator.evaluate(**self._data, **self._options, checkpoint_path=newest)
        tf.logging.info("Validation (step %d): %s", step, ", ".join(f"{key} = {found[key]}" for key in sorted(found)))
        if self._metric not in found:
            raise ValueError(f"early_stopping_metric={self._metric!r}: the evaluation has {sorted(found)}.")
        value = float(found[self._metric])
        if self.best_value is None or (value < self.best_value if self._minimize else value > self.best_value):
            self.best_value, self.best_step, self.best_metrics = value, step, found
            return False
        if self._patience is None or step - (self.best_step or 0) < self._patience:
            return False
        tf.logging.info("Stopping. Best step: %s with %s = %s.", self.best_step, self._metric, self.best_value)
        return True


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[Any]:
    """Returns the hooks of a list of monitors; all monitors are hooks here."""
    for one in monitors_or_hooks or []:
        if hasattr(one, "set_estimator"):
            one.set_estimator(estimator)
    return list(monitors_or_hooks or [])
