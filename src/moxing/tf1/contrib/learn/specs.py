"""What models, metrics and runs of `tf.contrib.learn` are described with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from moxing.tf1.contrib import _lazy

__all__ = ["MetricSpec", "ModeKeys", "ModelFnOps", "PredictionKey", "RunConfig"]


class ModeKeys:
    """What a model is built for."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for another word."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"mode {key!r}: expected {cls.TRAIN!r}, {cls.EVAL!r} or {cls.INFER!r}.")


class PredictionKey:
    """Names of the predictions of the canned estimators."""

    CLASSES = "classes"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOGISTIC = "logistic"
    SCORES = "scores"


class ModelFnOps(NamedTuple):
    """What a model function returns."""

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Any = None
    output_alternatives: Any = None
    training_chief_hooks: Any = None
    training_hooks: Any = None
    scaffold: Any = None


class MetricSpec:
    """A metric, and the predictions, labels and weights that it is computed from.

    Args:
      metric_fn: takes `predictions` and `labels`, and `weights` if there is a `weight_key`; returns a value and an
        update.
      prediction_key: which of several predictions.
      label_key: which of several labels.
      weight_key: the feature with the weights.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.metric_fn = metric_fn
        self.prediction_key, self.label_key, self.weight_key = prediction_key, label_key, weight_key

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """Returns the value and the update of the metric."""
        values = {
            "predictions": _one_of(predictions, self.prediction_key, "prediction_key"),
            "labels": _one_of(labels, self.label_key, "label_key"),
        }
        if self.weight_key is not None:
            values["weights"] = inputs[self.weight_key]
        return self.metric_fn(**values)


def _one_of(values: Any, key: str | None, argument: str) -> Any:
    if not isinstance(values, Mapping):
        return values
    if key is None and len(values) == 1:
        return next(iter(values.values()))
    if key not in values:
        raise ValueError(f"MetricSpec({argument}={key!r}): expected one of {sorted(values)}.")
    return values[key]


def RunConfig(
    master: str | None = None,
    num_cores: int = 0,
    log_device_placement: bool = False,
    gpu_memory_fraction: float = 1,
    session_config: Any = None,
    **settings: Any,
) -> Any:
    """Returns a `tf.estimator.RunConfig`. A cluster is described by TF_CONFIG.

    Args:
      master: of a session on another process; must be empty.
      num_cores: the number of threads; 0 for all cores.
      log_device_placement: whether to log where operations are placed.
      gpu_memory_fraction: the share of a GPU's memory to use.
      session_config: a ConfigProto, in place of the three before it.
      **settings: those of `tf.estimator.RunConfig`, such as save_checkpoints_steps.
    """
    if master or settings.pop("evaluation_master", ""):
        raise ValueError(
            f"RunConfig(master={master!r}): describe the cluster in TF_CONFIG, or use moxing run --workers."
        )
    if session_config is None:
        session_config = tf.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )
    return _lazy.resolve("moxing.tensorflow.estimator:RunConfig")(session_config=session_config, **settings)
