"""Metrics of the evaluation data, printed while the model is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook


class LogEvaluationMetricHook(EvaluationHook):
    """Prints `<prefix> step: S name: value ...` every so many epochs.

    Needs `mox.run(inter_mode=mox.ModeKeys.EVAL)`.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each the mean over a batch.
      batch_size: how many samples a training step takes.
      samples_in_train: how many samples an epoch has.
      samples_in_eval: how many samples an evaluation takes, from the start of the data; None: all.
      evaluate_every_n_epochs: the period.
      prefix: begins the line.
      input_fn: gives other data than `mox.run`'s `input_fn`, see `EvaluationHook`.

    Example:
      >>> import tensorflow.compat.v1 as tf
      >>> with tf.Graph().as_default():
      ...     hook = LogEvaluationMetricHook({'loss': tf.constant(1.0)}, batch_size=32, samples_in_train=1000,
      ...                                    samples_in_eval=100)
      >>> hook.period
      32
    """

    def __init__(
        self,
        monitor_info: Mapping[str, Any],
        batch_size: int,
        samples_in_train: int,
        samples_in_eval: int | None = None,
        evaluate_every_n_epochs: float = 1,
        prefix: str = "[VALIDATION METRICS]",
        input_fn: Callable[..., Any] | None = None,
    ) -> None:
        # Of its own: Python's words about a missing argument name the class.
        super().__init__(
            monitor_info, batch_size, samples_in_train, samples_in_eval, evaluate_every_n_epochs, prefix, input_fn
        )
