"""Counters inside the graph: they are right even if the data ends in the middle of a loop.

A short training step takes about 100 µs and every operation of the ledger adds to it, so there are few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow.compat.v1 as tf


@dataclass(frozen=True)
class LedgerValues:
    """The values of the ledger.

    Attributes:
      samples: samples seen since the run began.
      steps: steps done since the run began.
      last: log_info of the last step.
      means: log_info averaged over all samples, if the ledger keeps the sums.
    """

    samples: int
    steps: int
    last: dict[str, float]
    means: dict[str, float]


class Ledger:
    """Counts samples and steps and keeps the last log_info; in EVAL also its sums over all samples.

    Args:
      log_info: scalars by name.
      samples: the number of samples in the batch.
      arrived: operations that fetch the batch; at the end of the data they fail and nothing is counted.
      means: scalars by the same names to average over all samples; None for none.
    """

    def __init__(
        self,
        log_info: Mapping[str, tf.Tensor],
        samples: tf.Tensor,
        arrived: Sequence[tf.Operation],
        means: Mapping[str, tf.Tensor] | None = None,
    ) -> None:
        self._names = list(log_info)
        packed = _packed(log_info)
        averaged = packed if means is log_info else _packed(means)
        self._counts = _variable("counts", 2)
        self._last = _variable("last", len(log_info)) if packed is not None else None
        self._sums = _variable("sums", len(log_info)) if averaged is not None else None
        variables = [self._counts, self._last, self._sums]
        self.initializers = [variable.initializer for variable in variables if variable is not None]
        with tf.control_dependencies(arrived):
            updates = [self._counts.assign_add(_count(samples), read_value=False)]
            if self._last is not None:
                updates.append(self._last.assign(packed, read_value=False))
            if self._sums is not None:
                weighted = averaged * tf.cast(samples, tf.float64)
                updates.append(self._sums.assign_add(weighted, read_value=False))
        self.update = tf.group(*updates)

    def read(self) -> dict[str, tf.Tensor]:
        """Reads the counters, after the current control dependencies."""
        variables = {"counts": self._counts, "last": self._last, "sums": self._sums}
        return {name: variable.read_value() for name, variable in variables.items() if variable is not None}

    def decode(self, read: Mapping[str, np.ndarray]) -> LedgerValues:
        """Turns fetched values of `read` into `LedgerValues`."""
        samples, steps = (int(count) for count in read["counts"])
        sums = read.get("sums", np.zeros(0)).tolist()
        return LedgerValues(
            samples=samples,
            steps=steps,
            # Before the first step there is no log_info; zeros would look like results.
            last=dict(zip(self._names, read.get("last", np.zeros(0)).tolist(), strict=True)) if steps else {},
            means={name: total / samples for name, total in zip(self._names, sums, strict=False)} if samples else {},
        )


def _packed(values: Mapping[str, tf.Tensor] | None) -> tf.Tensor | None:
    return tf.stack([tf.cast(value, tf.float64) for value in values.values()]) if values else None


def _variable(name: str, size: int) -> tf.Variable:
    return tf.get_variable(
        f"moxing/ledger/{name}",
        shape=[size],
        dtype=tf.float64,
        initializer=tf.zeros_initializer(),
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
    )


def _count(samples: tf.Tensor) -> tf.Tensor:
    """`[samples, 1]`; a constant where the size of the batch is fixed."""
    known = tf.get_static_value(samples)
    if known is not None:
        return tf.constant([float(known), 1.0], tf.float64)
    return tf.stack([tf.cast(samples, tf.float64), tf.constant(1.0, tf.float64)])
