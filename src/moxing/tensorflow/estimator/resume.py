"""Resumes the training of an Estimator: at its newest undamaged checkpoint, and where it was in the data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoints.choose import Fetch, first_undamaged
from moxing.tensorflow.executor.checkpoints.files import (
    POSITION_SUFFIX,
    PREFIX,
    files_in,
    mark_valid,
    read_position,
    unusable,
    valid_checkpoints,
    write_position,
)
from moxing.tensorflow.executor.checkpoints.position import START, Position


def drop_damaged(model_dir: str, fetch: Fetch | None = None) -> None:
    """Takes damaged checkpoints at the end of the `checkpoint` file out of it, so that the training restores another.

    Args:
      model_dir: the directory.
      fetch: called with the prefix of a checkpoint before its files are read.

    Raises:
      ValueError: all are damaged.
    """
    prefixes = valid_checkpoints(model_dir)
    good = first_undamaged(prefixes, fetch)
    if prefixes and good is None:
        raise ValueError(f"{unusable('model_dir', model_dir, prefixes)}, or give another model_dir.")
    if good:
        mark_valid(model_dir, list(reversed(prefixes[good:])))


def interrupted_at(model_dir: str) -> Position:
    """The position of the newest checkpoint of a training that did not end normally; else the start of the data."""
    newest = tf.train.latest_checkpoint(model_dir)
    # A checkpoint of TensorFlow 1 has no position: its training starts over with the data, as it did there.
    return read_position(newest) if newest and os.path.exists(newest + POSITION_SUFFIX) else START


#: The position of a training whose `input_fn` returns no dataset. A resumed one reads other random data than before.
UNKNOWN = Position(hooks={"input_fn": "unknown position"})


def is_unknown(position: Position) -> bool:
    """Whether a training was interrupted that could not know its position in the data.

    Example:
      >>> is_unknown(UNKNOWN), is_unknown(START)
      (True, False)
    """
    return "input_fn" in position.hooks


class PositionListener(tf.train.CheckpointSaverListener):
    """Writes the position beside every checkpoint.

    A call of `Estimator.train` that ends normally leaves the start of the data: the next call reads its data from the
    start, as in TensorFlow 1. Only a training that was interrupted continues in the middle of the data.

    Args:
      model_dir: the directory of the checkpoints.
      position: the position now.
    """

    def __init__(self, model_dir: str, position: Callable[[], Position]) -> None:
        self._base, self._position = os.path.join(model_dir, PREFIX), position
        self._interrupted = False

    def interrupt(self) -> None:
        """The training ends because of a signal, and is to be resumed."""
        self._interrupted = True

    def before_save(self, session: Any, global_step_value: int) -> None:
        write_position(f"{self._base}-{global_step_value}", self._position())

    def after_save(self, session: Any, global_step_value: int) -> None:
        """Removes the positions of checkpoints that were removed."""
        directory = os.path.dirname(self._base)
        names = set(files_in(directory))
        for name in names:
            prefix = name.removesuffix(POSITION_SUFFIX)
            if prefix != name and f"{prefix}.index" not in names:
                os.remove(os.path.join(directory, name))

    def end(self, session: Any, global_step_value: int) -> None:
        if not self._interrupted:
            write_position(f"{self._base}-{global_step_value}", replace(START, seed=self._position().seed))
