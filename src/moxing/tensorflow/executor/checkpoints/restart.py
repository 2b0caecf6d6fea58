"""`--restart`: moves the checkpoints of a directory aside, for a training from the start."""

from __future__ import annotations

import os

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoints.files import MARKER, PREFIX, files_in

#: Start of the names of the directories that `--restart` moves checkpoints into.
ASIDE = "before_restart_"

#: Directories that this process has moved aside. What it trained itself since then stays.
_moved: set[str] = set()


def move_aside(log_dir: str) -> None:
    """Moves the checkpoints of `log_dir` into a new subdirectory; once per process and directory."""
    if os.path.realpath(log_dir) in _moved:
        return
    _moved.add(os.path.realpath(log_dir))
    files = [name for name in sorted(files_in(log_dir)) if name == MARKER or name.startswith(PREFIX)]
    if not files:
        return
    number = 1
    while os.path.exists(target := os.path.join(log_dir, f"{ASIDE}{number}")):
        number += 1
    os.makedirs(target)
    # A checkpoint is valid by the marker or, without one, by its index file: these go first, so that after a crash in
    # between no half-moved checkpoint is valid. The same command moves the rest.
    for name in sorted(files, key=lambda name: (name != MARKER, not name.endswith(".index"))):
        os.replace(os.path.join(log_dir, name), os.path.join(target, name))
    tf.logging.info("--restart: moved the checkpoints of %s to %s.", log_dir, target)
