"""A few numbers that the steps keep inside the graph: they are there also when the data ended in mid-loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow.compat.v1 as tf


@dataclass(frozen=True)
class LedgerValues:
    """What the ledger said at one moment.

    Attributes:
      samples: samples seen since the run began.
      steps: steps done since the run began.
      last: log_info of the last step.
      means: log_info averaged over all samples.
    """

    samples: int
    steps: int
    last: dict[str, float]
    means: dict[str, float]


class Ledger:
    """One small vector variable, written once a step: samples, steps, and log_info (sums by sample, and the last).

    Args:
      log_info: scalars by name.
      samples: the number of samples in the batch.
      arrived: operations that give the batch; where they fail, the data has ended and nothing is counted.
    """

    def __init__(
        self, log_info: Mapping[str, tf.Tensor], samples: tf.Tensor, arrived: Sequence[tf.Operation] = ()
    ) -> None:
        self._names = list(log_info)
        self._variable = tf.get_variable(
            "moxing/ledger",
            shape=[2 + 2 * len(self._names)],
            dtype=tf.float64,
            initializer=tf.zeros_initializer(),
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )
        count = tf.cast(samples, tf.float64)
        values = [tf.cast(value, tf.float64) for value in log_info.values()]
        packed = tf.stack([count, tf.constant(1.0, tf.float64), *values])
        old = self._variable.read_value()
        counted = 2 + len(values)
        # Counted are samples, steps and the sums; what follows is the last batch's own values.
        weight = tf.concat([tf.ones([2], tf.float64), tf.fill([len(values)], count)], axis=0)
        new = tf.concat([old[:counted] + packed * weight, packed[2:]], axis=0)
        with tf.control_dependencies(arrived):
            self.update = self._variable.assign(new, read_value=False)
        self.initializer = self._variable.initializer

    def read(self) -> tf.Tensor:
        """A new read of the vector, after whatever the current control dependencies are."""
        return self._variable.read_value()

    def decode(self, vector: np.ndarray | Sequence[float]) -> LedgerValues:
        """The meaning of a vector that was read."""
        samples, steps = float(vector[0]), int(vector[1])
        size = len(self._names)
        sums, last = vector[2 : 2 + size], vector[2 + size :]
        return LedgerValues(
            samples=int(samples),
            steps=steps,
            last=dict(zip(self._names, map(float, last), strict=True)),
            means={
                name: float(total) / samples if samples else 0.0 for name, total in zip(self._names, sums, strict=True)
            },
        )
