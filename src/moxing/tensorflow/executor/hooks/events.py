"""The event file of a run, which TensorBoard reads."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping

import tensorflow.compat.v1 as tf

_WRITERS = itertools.count()


class EventFile:
    """One file for all who write: of several in a directory TensorBoard follows the newest only.

    Args:
      directory: where; the file is made with the first entry.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._writer: tf.summary.FileWriter | None = None

    def add(self, summary: bytes | tf.Summary, step: int) -> None:
        """Writes summaries of a step."""
        if self._writer is None:
            # The file's name holds the second; two runs within one must not write into the same.
            suffix = f".{os.getpid()}.{next(_WRITERS)}"
            self._writer = tf.summary.FileWriter(self._directory, filename_suffix=suffix)
        self._writer.add_summary(summary, step)
        self._writer.flush()

    def add_scalars(self, values: Mapping[str, float], step: int) -> None:
        """Writes numbers by their tags."""
        scalars = [tf.Summary.Value(tag=tag, simple_value=number) for tag, number in values.items()]
        self.add(tf.Summary(value=scalars), step)

    def close(self) -> None:
        """Nothing is written any more for now."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
