"""Chooses the checkpoint that a run starts from, and checks that it is undamaged."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoints.files import (
    UNREADABLE,
    checkpoint_prefix,
    has_files,
    read_position,
    unusable,
    valid_checkpoints,
)
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.specs import ModeKeys

#: Fetches the files of a checkpoint from a store, by its local prefix.
Fetch = Callable[[str], None]


@dataclass(frozen=True)
class ChosenCheckpoint:
    """A readable checkpoint.

    Attributes:
      prefix: its path, without the suffixes of its files.
      shapes: shapes of its variables by name.
      dtypes: types of its variables by name.
      resume: true when it is in `log_dir` and the run resumes from it; false for a warm start.
      position: position in the data, for `resume`.
    """

    prefix: str
    shapes: Mapping[str, Sequence[int]]
    dtypes: Mapping[str, tf.DType]
    resume: bool = False
    position: Position = START


def choose_checkpoint(
    config: RunConfig,
    fetch: Fetch | None = None,
    find: Callable[[str], ChosenCheckpoint] | None = None,
) -> ChosenCheckpoint | None:
    """The checkpoint that a run starts from: that of `log_dir`, else `checkpoint_path`, else none (TRAIN only).

    Args:
      config: the run.
      fetch: called with the prefix of a checkpoint of `log_dir` before its files are read.
      find: finds the checkpoint of `checkpoint_path`; `find_checkpoint` by default.
    """
    if config.log_dir is not None:
        newest = newest_checkpoint(config.log_dir, config.mode is ModeKeys.TRAIN, fetch)
        if newest is not None:
            if config.checkpoint_path is not None:
                tf.logging.info("Ignoring --checkpoint_path because a checkpoint already exists in %s", config.log_dir)
            return newest
    if config.checkpoint_path is not None:
        return (find or find_checkpoint)(config.checkpoint_path)
    if config.mode is ModeKeys.TRAIN:
        return None
    empty = f"log_dir={config.log_dir!r} holds none and " if config.log_dir else ""
    raise ValueError(
        f"mox.run(run_mode={config.mode.value!r}) needs a checkpoint: {empty}checkpoint_path is not given. "
        "Give checkpoint_path: the directory of the training, or a checkpoint's prefix."
    )


def newest_checkpoint(log_dir: str, with_position: bool = True, fetch: Fetch | None = None) -> ChosenCheckpoint | None:
    """The newest undamaged checkpoint of a directory, or None if it has none; warns of damaged ones.

    Args:
      log_dir: the directory.
      with_position: also read the position in the data, and warn if it is missing.
      fetch: called with the prefix of a checkpoint before its files are read.
    """
    prefixes = valid_checkpoints(log_dir)
    number = first_undamaged(prefixes, fetch)
    if number is not None:
        prefix = prefixes[number]
        position = read_position(prefix) if with_position else START
        return replace(_checkpoint(prefix, tf.train.NewCheckpointReader(prefix)), resume=True, position=position)
    if prefixes:
        raise ValueError(
            f"{unusable('log_dir', log_dir, prefixes)}, give another log_dir, or train from the start with --restart."
        )
    return None


def first_undamaged(prefixes: Sequence[str], fetch: Fetch | None = None) -> int | None:
    """The index of the first undamaged checkpoint, or None; warns of damaged ones.

    Args:
      prefixes: the checkpoints, newest first.
      fetch: called with the prefix of a checkpoint before its files are read.
    """
    for number, prefix in enumerate(prefixes):
        if fetch is not None:
            fetch(prefix)
        try:
            _read_all(prefix)
            return number
        except UNREADABLE as error:
            reason = (getattr(error, "message", "") or str(error)).splitlines()[0]
            older = "falling back to the one before it" if number + 1 < len(prefixes) else "there is no older one"
            tf.logging.warning("The checkpoint %s is damaged (%s); %s.", prefix, reason, older)
    return None


def find_checkpoint(path: str, fetch: Fetch | None = None) -> ChosenCheckpoint:
    """The checkpoint of a `checkpoint_path`: a directory, or a prefix, in V1 or V2 format.

    Args:
      path: the directory or prefix.
      fetch: called with the prefix of a checkpoint of the directory before its files are read.
    """
    if os.path.isdir(path):
        newest = newest_checkpoint(path, with_position=False, fetch=fetch)
        if newest is None:
            raise ValueError(f"checkpoint_path={path!r}: the directory holds no checkpoint.")
        return replace(newest, resume=False)
    prefix = checkpoint_prefix(path)
    if not has_files(prefix):
        raise ValueError(
            f"checkpoint_path={path!r}: there is no such directory and no such checkpoint. Give the directory of a "
            "training, or a checkpoint's prefix such as log/model.ckpt-100."
        )
    try:
        reader = tf.train.NewCheckpointReader(prefix)
    except UNREADABLE as error:
        raise ValueError(f"checkpoint_path={path!r}: not a readable checkpoint: {error}.") from None
    return _checkpoint(prefix, reader)


def _checkpoint(prefix: str, reader: Any) -> ChosenCheckpoint:
    return ChosenCheckpoint(prefix, reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map())


def _read_all(prefix: str) -> None:
    """Reads every variable of a checkpoint once, which verifies the checksums."""
    reader = tf.train.NewCheckpointReader(prefix)
    for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)
