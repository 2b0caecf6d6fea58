"""Saves checkpoints, keeps the newest ones and, by request, one every n hours."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.executor.checkpoints.disk import explain
from moxing.tensorflow.executor.checkpoints.files import (
    POSITION_SUFFIX,
    PREFIX,
    mark_valid,
    read_position,
    remove_checkpoint,
    update_hook_state,
    valid_checkpoints,
    write_position,
)
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.checkpoints.retention import KEY, Retention, hours_to_keep


class Keeper:
    """Writes checkpoints of the current graph into a directory and removes old ones.

    Create it when the graph is complete.

    Args:
      log_dir: the directory, created if missing.
      seed: the run's seed, saved with every checkpoint.
      max_to_keep: number of checkpoints to keep; None: `--keep_checkpoint_max`, and one every
        `--keep_checkpoint_every_n_hours` besides.

    Attributes:
      last: prefix of the newest checkpoint of this run; None before the first.
    """

    def __init__(self, log_dir: str, seed: int | None, max_to_keep: int | None = None) -> None:
        os.makedirs(log_dir, exist_ok=True)
        self._log_dir, self._seed = log_dir, seed
        self._newest = FLAGS.get("keep_checkpoint_max") if max_to_keep is None else max_to_keep
        if self._newest < 1:
            raise FlagError(f"--keep_checkpoint_max={self._newest}: expected a number from 1.")
        self._saver = tf.train.Saver(max_to_keep=None)
        self._prefixes = list(reversed(valid_checkpoints(log_dir)))
        asked = max_to_keep is None and FLAGS.get("keep_checkpoint_every_n_hours") is not None
        state = self._saved_state()
        # Only if checkpoints are kept for good, or were in an earlier run.
        self._retention = Retention(self._newest, hours_to_keep() if asked else None, state) if asked or state else None
        self.last: str | None = None

    def resume_from(self, prefix: str) -> None:
        """Sets `last` to the checkpoint that the run resumes from."""
        self.last = prefix

    def save(self, session: tf.Session, global_step: int, position: Position = START) -> str:
        """Writes a checkpoint and returns its prefix.

        The variables come first, then the JSON, then `mark_valid`: a crash in between leaves the older checkpoints
        valid. JSON and marker are flushed to disk; variables damaged by a power failure are found by their checksums.

        Args:
          session: the session with the variables.
          global_step: number of the checkpoint.
          position: position in the data and states of hooks; the seed is added here.
        """
        base = os.path.join(self._log_dir, PREFIX)
        tf.logging.info("Saving checkpoints for %d into %s.", global_step, base)
        self._make_again()
        try:
            return self._write(session, base, global_step, position)
        except BaseException as error:
            failed = f"{base}-{global_step}"
            if failed not in self._prefixes:
                with contextlib.suppress(OSError):
                    remove_checkpoint(failed)
            explain(error, f"The checkpoint of step {global_step}", self._log_dir, self.last)
            raise

    def _make_again(self) -> None:
        """Someone may remove the directory while the training runs."""
        if not os.path.isdir(self._log_dir):
            tf.logging.warning("log_dir=%s was removed during the training; creating it again.", self._log_dir)
            os.makedirs(self._log_dir, exist_ok=True)
            self._prefixes = []

    def _write(self, session: tf.Session, base: str, global_step: int, position: Position) -> str:
        prefix = str(
            self._saver.save(session, base, global_step=global_step, write_meta_graph=False, write_state=False)
        )
        prefixes = [*(path for path in self._prefixes if path != prefix), prefix]
        if self._retention is None:
            self._prefixes, old = prefixes[-self._newest :], prefixes[: -self._newest]
        else:
            self._prefixes, old = self._retention.sort(prefixes)
            position = replace(position, hooks={**position.hooks, **self._retention.state()})
        write_position(prefix, replace(position, seed=self._seed))
        mark_valid(self._log_dir, self._prefixes)
        for path in old:
            remove_checkpoint(path)
        self.last = prefix
        return prefix

    def update_state(self, key: str, state: Mapping[str, Any]) -> None:
        """Replaces the state of one hook in the newest checkpoint."""
        if self.last is not None:
            update_hook_state(self.last, key, state)

    def restore(self, session: tf.Session) -> None:
        """Restores the variables of the newest checkpoint."""
        self._saver.restore(session, self.last)

    def _saved_state(self) -> Mapping[str, Any]:
        """What the retention saved with the newest checkpoint."""
        if not self._prefixes or not os.path.exists(self._prefixes[-1] + POSITION_SUFFIX):
            return {}
        state: Mapping[str, Any] = read_position(self._prefixes[-1]).hooks.get(KEY, {})
        return state
