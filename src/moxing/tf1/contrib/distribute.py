"""`tf.contrib.distribute`: the strategies that are in `tf.distribute` today, with their first arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    ("tensorflow.compat.v1:distribute", "OneDeviceStrategy get_replica_context get_strategy has_strategy"),
    ("tensorflow.compat.v1:distribute.experimental", "ParameterServerStrategy CentralStorageStrategy"),
    ("tensorflow.compat.v1:distribute.experimental", "CollectiveAllReduceStrategy=MultiWorkerMirroredStrategy"),
)

__all__ = ["MirroredStrategy", *_NAMES]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


def MirroredStrategy(
    devices: Sequence[str] | None = None,
    num_gpus: int | None = None,
    num_gpus_per_worker: int | None = None,
    cross_device_ops: Any = None,
) -> Any:
    """Creates a `tf.distribute.MirroredStrategy`.

    Args:
      devices: the devices; all GPUs by default.
      num_gpus: the first so many GPUs.
      num_gpus_per_worker: another name of `num_gpus`.
      cross_device_ops: how values are combined.

    Example:
      >>> MirroredStrategy(devices=['/cpu:0']).num_replicas_in_sync
      1
    """
    import tensorflow.compat.v1 as tf

    count = num_gpus if num_gpus is not None else num_gpus_per_worker
    if devices is not None and count is not None:
        raise ValueError(f"MirroredStrategy(devices={devices!r}, num_gpus={count}): give one of the two.")
    if count is not None:
        devices = [f"/gpu:{number}" for number in range(count)] or ["/cpu:0"]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops)
