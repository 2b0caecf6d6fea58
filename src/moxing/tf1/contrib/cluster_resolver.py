"""`tf.contrib.cluster_resolver`: the resolvers that are in `tf.distribute.cluster_resolver` today."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tensorflow.compat.v1:distribute.cluster_resolver",
        "ClusterResolver SimpleClusterResolver UnionClusterResolver=UnionResolver "
        "GceClusterResolver=GCEClusterResolver KubernetesClusterResolver "
        "SlurmClusterResolver TFConfigClusterResolver",
    ),
    ("moxing.tf1.contrib.tpu:", "TPUClusterResolver"),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
