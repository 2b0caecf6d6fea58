"""`tf.contrib.cluster_resolver`: the resolvers that are in `tf.distribute.cluster_resolver` today."""

from __future__ import annotations

from typing import Any, NoReturn

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tensorflow.compat.v1:distribute.cluster_resolver",
        "ClusterResolver SimpleClusterResolver UnionClusterResolver=UnionResolver "
        "GceClusterResolver=GCEClusterResolver KubernetesClusterResolver "
        "SlurmClusterResolver TFConfigClusterResolver",
    ),
)

__all__ = [*_NAMES, "TPUClusterResolver"]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


class TPUClusterResolver:
    """Refused: programs make one before their `TPUEstimator(use_tpu=True)`, which is refused too.

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
