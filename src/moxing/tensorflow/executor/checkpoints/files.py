"""The files of checkpoints besides TensorFlow's own.

Next to each checkpoint a JSON has its `Position`. In each directory the `checkpoint` file names the valid checkpoints:
`mark_valid` writes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.atomic_write import replace_file
from moxing.tensorflow.executor.checkpoints.position import START, Position

#: Start of the file names of all checkpoints.
PREFIX = "model.ckpt"
#: The file that names the valid checkpoints of a directory.
MARKER = "checkpoint"
#: Suffix of the JSON file of a checkpoint.
POSITION_SUFFIX = ".moxing.json"

#: What TensorFlow's checkpoint reader raises for truncated, changed or missing files.
UNREADABLE = (tf.errors.OpError, ValueError, LookupError, RuntimeError, OSError)


def write_position(prefix: str, position: Position) -> None:
    """Writes the JSON of the checkpoint `prefix`."""
    text = json.dumps({"format": 1, **asdict(position)})
    replace_file(prefix + POSITION_SUFFIX, "log_dir", lambda stream: stream.write(text.encode()))


def read_position(prefix: str) -> Position:
    """Reads the JSON of the checkpoint `prefix`; the start of the data, and a warning, if that is not possible."""
    path = prefix + POSITION_SUFFIX
    if not os.path.exists(path):
        tf.logging.warning("%s is missing; reading the data from the start.", path)
        return START
    try:
        content = json.loads(file.read(path))
        samples = tuple(int(sample) for sample in content.get("samples", ()))
        hooks = dict(content.get("hooks", {}))
        return Position(elements=int(content["elements"]), seed=content["seed"], samples=samples, hooks=hooks)
    except (OSError, ValueError, KeyError, TypeError) as error:
        tf.logging.warning("Cannot read %s (%s); reading the data from the start.", path, error)
        return START


def update_hook_state(prefix: str, key: str, state: Mapping[str, Any]) -> None:
    """Replaces the state of one hook in the JSON of the checkpoint `prefix`, if there is one."""
    path = prefix + POSITION_SUFFIX
    if os.path.exists(path):
        content = json.loads(file.read(path))
        content["hooks"] = {**content.get("hooks", {}), key: dict(state)}
        file.write(path, json.dumps(content))


def mark_valid(log_dir: str, prefixes: Sequence[str]) -> None:
    """Makes checkpoints valid, and no others of the directory: one atomic write of the `checkpoint` file.

    Args:
      log_dir: the directory.
      prefixes: the checkpoints, oldest first. Names in the file are relative, so that the directory can be moved.
    """
    text = marker_text([os.path.basename(prefix) for prefix in prefixes])
    replace_file(os.path.join(log_dir, MARKER), "log_dir", lambda stream: stream.write(text.encode()))


def marker_text(names: Sequence[str]) -> str:
    """The content of a `checkpoint` file.

    Args:
      names: the checkpoints, oldest first.

    Example:
      >>> print(marker_text(['model.ckpt-0']), end='')
      model_checkpoint_path: "model.ckpt-0"
      all_model_checkpoint_paths: "model.ckpt-0"
    """
    lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    return "\n".join(lines) + "\n"


def valid_checkpoints(log_dir: str) -> list[str]:
    """Prefixes of the valid checkpoints of a directory, newest first.

    If the `checkpoint` file is missing or damaged, these are the checkpoints whose index file is there.
    """
    try:
        state = tf.train.get_checkpoint_state(log_dir)
    except UNREADABLE:
        state = None
    if state is not None and state.all_model_checkpoint_paths:
        return list(reversed(state.all_model_checkpoint_paths))
    if state is not None and state.model_checkpoint_path:
        return [state.model_checkpoint_path]
    steps = [re.fullmatch(rf"{re.escape(PREFIX)}-(\d+)\.index", name) for name in files_in(log_dir)]
    numbers = sorted((int(match.group(1)) for match in steps if match), reverse=True)
    return [os.path.join(log_dir, f"{PREFIX}-{number}") for number in numbers]


def checkpoint_prefix(path: str) -> str:
    """The prefix of the checkpoint that a file belongs to.

    Example:
      >>> checkpoint_prefix('log/model.ckpt-100.data-00000-of-00001'), checkpoint_prefix('log/model.ckpt-100')
      ('log/model.ckpt-100', 'log/model.ckpt-100')
    """
    return re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path)


def remove_checkpoint(prefix: str) -> None:
    """Removes the files of a checkpoint."""
    directory, base = os.path.split(prefix)
    for name in files_in(directory):
        if name.startswith(base + "."):
            os.remove(os.path.join(directory, name))


def files_in(directory: str) -> list[str]:
    """Names of the entries of a directory; none if it does not exist."""
    return os.listdir(directory) if os.path.isdir(directory) else []
