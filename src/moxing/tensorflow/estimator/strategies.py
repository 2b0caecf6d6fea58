"""The `tf.distribute` strategies of an Estimator: that of `--num_gpus`, and those that it cannot use.

In one process these strategies train and evaluate an Estimator: `MirroredStrategy`, `OneDeviceStrategy`,
`CentralStorageStrategy`, `MultiWorkerMirroredStrategy` and the `ParameterServerStrategy` of TensorFlow 1. In a job of
several processes the workers and ps of TF_CONFIG train without a strategy. `RunConfig` itself refuses the
`ParameterServerStrategy` of TensorFlow 2, and any strategy in a job of several processes.
"""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.parallel.devices import tower_devices

_REFUSED = {
    "TPUStrategy": "TensorFlow 2.21 can no longer run an Estimator on a TPU",
    "TPUStrategyV1": "TensorFlow 2.21 can no longer run an Estimator on a TPU",
    "TPUStrategyV2": "TensorFlow 2.21 can no longer run an Estimator on a TPU",
    "_DefaultDistributionStrategy": "tf.distribute.get_strategy() outside of a scope is no strategy. Leave it out",
}


def check_strategies(config: Any) -> None:
    """Refuses strategies with which an Estimator cannot work.

    Args:
      config: a `RunConfig`, or None.

    Raises:
      ValueError: the strategy is one of them.
    """
    for argument in ("train_distribute", "eval_distribute"):
        name = type(getattr(config, argument, None)).__name__
        if name in _REFUSED:
            raise ValueError(f"RunConfig({argument}={name}) is not available: {_REFUSED[name]}.")


def with_gpus(config: Any) -> Any:
    """The configuration with a strategy for `--num_gpus=N`, N > 1: each step takes N batches, one for each GPU.

    If there are fewer GPUs, the replicas run on logical CPU devices, as in `mox.run`. The user's own
    `train_distribute` stays.

    Args:
      config: a `RunConfig`.

    Raises:
      ValueError: several GPUs in a job of several processes.
    """
    count = FLAGS.get("num_gpus")
    if count in (0, 1) or config.train_distribute is not None:
        return config
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    tasks = sum(len(hosts) for job, hosts in cluster.items() if job != "evaluator")
    if tasks > 1:
        raise ValueError(
            f"--num_gpus={count} in a job of {tasks} processes: a worker of an Estimator computes on one GPU. Leave "
            "the flag out and start one worker for each GPU."
        )
    devices = tower_devices()
    with tf.Graph().as_default():  # in eager mode it would look for the logical devices, which only the session has
        changes: dict[str, Any] = {"train_distribute": tf.distribute.MirroredStrategy(devices)}
    if devices[0].startswith("/cpu"):
        session_config = tf.ConfigProto(allow_soft_placement=True)
        if config.session_config is not None:
            session_config.CopyFrom(config.session_config)
        session_config.device_count["CPU"] = max(len(devices), session_config.device_count.get("CPU", 0))
        changes["session_config"] = session_config
    return config.replace(**changes)
