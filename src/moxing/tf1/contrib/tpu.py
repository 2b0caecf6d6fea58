"""`tf.contrib.tpu`: TPUEstimator and what belongs to it, on CPUs and GPUs."""

from __future__ import annotations

from typing import Any, NoReturn

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    ("tensorflow_estimator.python.estimator.tpu.tpu_estimator:", "TPUEstimator TPUEstimatorSpec"),
    ("tensorflow_estimator.python.estimator.tpu.tpu_config:", "InputPipelineConfig RunConfig TPUConfig"),
    (
        "tensorflow.compat.v1:tpu",
        "CrossShardOptimizer batch_parallel bfloat16_scope core cross_replica_sum initialize_system "
        "outside_compilation replicate rewrite shard shutdown_system",
    ),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


class TPUClusterResolver:
    """Of `tf.contrib.cluster_resolver`; refused, like the `TPUEstimator(use_tpu=True)` for which programs make it.

    Example:
      >>> TPUClusterResolver('node-1')  # doctest: +ELLIPSIS
      Traceback (most recent call last):
      ValueError: TPUClusterResolver(tpu='node-1'): TensorFlow 2.21 can no longer run an Estimator on a TPU. ...
    """

    def __init__(self, tpu: str | None = None, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            f"TPUClusterResolver(tpu={tpu!r}): TensorFlow 2.21 can no longer run an Estimator on a TPU. Pass "
            "use_tpu=False to train on CPUs or GPUs."
        )
