"""Logs metrics of the evaluation data during training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook


class LogEvaluationMetricHook(EvaluationHook):
    """Logs `<prefix> step: S name: value ...` every n epochs.

    Needs `mox.run(inter_mode=mox.ModeKeys.EVAL)`.

    Args:
      monitor_info: scalar tensors of `model_fn` by name, each a mean over a batch.
      batch_size: number of samples in a training step.
      samples_in_train: number of samples in an epoch.
      samples_in_eval: number of samples to evaluate, from the start of the data; None for all.
      evaluate_every_n_epochs: epochs between two evaluations.
      prefix: start of the log line.
      input_fn: reads the data to evaluate, instead of the `input_fn` of `mox.run`; see `EvaluationHook`.

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
