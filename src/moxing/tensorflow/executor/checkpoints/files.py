"""The files of checkpoints besides TensorFlow's own.

Next to each checkpoint a JSON has its `Position`. In each directory the `checkpoint` file names the valid checkpoints:
`mark_valid` writes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.atomic_write import replace_file
from moxing.framework.file.urls import is_inside
from moxing.tensorflow.executor.checkpoints.position import START, Position

#: Start of the file names of all checkpoints.
PREFIX = "model.ckpt"
#: The file that names the valid checkpoints of a directory.
MARKER = "checkpoint"
#: Suffix of the JSON file of a checkpoint.
POSITION_SUFFIX = ".moxing.json"

#: What TensorFlow's checkpoint reader raises for truncated, changed or missing files.
UNREADABLE = (tf.errors.OpError, ValueError, LookupError, RuntimeError, OSError)


_FORMAT = 1


def write_position(prefix: str, position: Position) -> None:
    """Writes the JSON of the checkpoint `prefix`."""
    text = json.dumps({"format": _FORMAT, **asdict(position)})
    replace_file(prefix + POSITION_SUFFIX, "log_dir", lambda stream: stream.write(text.encode()))


def read_position(prefix: str) -> Position:
    """Reads the JSON of the checkpoint `prefix`; the start of the data, and a warning, if that is not possible.

    Raises:
      ValueError: a newer version of MoXing has written it.
    """
    path = prefix + POSITION_SUFFIX
    if not os.path.exists(path):
        tf.logging.warning("%s is missing; reading the data from the start.", path)
        return START
    try:
        content = json.loads(file.read(path))
        position = _parse(content)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        tf.logging.warning("Cannot read %s (%s); reading the data from the start.", path, error)
        return START
    if content.get("format", _FORMAT) != _FORMAT:
        raise ValueError(
            f"{path} has the format {content['format']!r}, and this version of MoXing reads the format {_FORMAT}: a "
            "newer version has written it. Use that version, or give another log_dir with this one as checkpoint_path."
        )
    return position


def _parse(content: Mapping[str, Any]) -> Position:
    if content.get("format", _FORMAT) != _FORMAT:
        return START
    return Position(
        elements=_count(content["elements"]),
        seed=None if content["seed"] is None else _count(content["seed"]),
        samples=tuple(_count(sample) for sample in content.get("samples", ())),
        sizes=tuple(int(size) for size in content.get("sizes", ())),
        hooks=dict(content.get("hooks", {})),
    )


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is not a count")
    return value


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
    """Prefixes of the valid checkpoints of a directory, newest first. All are in the directory.

    TensorFlow writes absolute paths into the `checkpoint` file. If the directory was moved or downloaded since, they
    lead to nothing or to another training: the files beside the `checkpoint` file are meant. If the file is missing or
    damaged, these are the checkpoints whose index file is there.
    """
    if named := named_checkpoints(log_dir):
        return [_in_directory(log_dir, path) for path in named]
    steps = [re.fullmatch(rf"{re.escape(PREFIX)}-(\d+)\.index", name) for name in files_in(log_dir)]
    numbers = sorted((int(match.group(1)) for match in steps if match), reverse=True)
    return [os.path.join(log_dir, f"{PREFIX}-{number}") for number in numbers]


def named_checkpoints(log_dir: str) -> list[str]:
    """The paths in the `checkpoint` file of a directory, newest first; none if it is missing or damaged."""
    try:
        state = tf.train.get_checkpoint_state(log_dir)
    except UNREADABLE:
        state = None
    if state is None:
        return []
    newest = [state.model_checkpoint_path] if state.model_checkpoint_path else []
    return list(reversed(state.all_model_checkpoint_paths)) or newest


def _in_directory(log_dir: str, path: str) -> str:
    near = os.path.join(log_dir, os.path.basename(path))
    below = is_inside(os.path.abspath(path), os.path.abspath(log_dir))
    return path if below and has_files(path) and not has_files(near) else near


def has_files(prefix: str) -> bool:
    """Returns whether a checkpoint exists, in V1 or V2 format.

    Example:
      >>> has_files('/no/such/model.ckpt-1')
      False
    """
    return os.path.exists(f"{prefix}.index") or os.path.isfile(prefix)


def adopt_moved(directory: str) -> None:
    """Makes the `checkpoint` file of a directory that was moved name the files beside it, for TensorFlow's functions.

    Warns if there are none: TensorFlow then restores a checkpoint from outside the directory.
    """
    named, valid = named_checkpoints(directory), valid_checkpoints(directory)
    if not named or os.path.realpath(os.path.dirname(named[0])) == os.path.realpath(os.path.dirname(valid[0])):
        return
    if has_files(valid[0]):
        tf.logging.warning(
            "%s names %s, which is elsewhere; using %s.", os.path.join(directory, MARKER), named[0], valid[0]
        )
        with contextlib.suppress(OSError):  # the directory may be read-only
            mark_valid(directory, list(reversed(valid)))
    elif has_files(named[0]):
        tf.logging.warning(
            "%s names a checkpoint outside of the directory: %s.", os.path.join(directory, MARKER), named[0]
        )


def unusable(argument: str, directory: str, prefixes: Sequence[str]) -> str:
    """Says why none of the checkpoints that a directory names can be used.

    Args:
      argument: the name of the argument with the directory.
      directory: the directory.
      prefixes: what `valid_checkpoints` returned.
    """
    if any(map(has_files, prefixes)):
        return f"All {len(prefixes)} checkpoints in {argument}={directory} are damaged. Restore the files from a copy"
    named = (named_checkpoints(directory) or prefixes)[0]
    return (
        f"{argument}={directory}: its file {MARKER!r} names {named}, and there is no {prefixes[0]}.index. If the "
        f"directory was moved or downloaded, bring the files {os.path.basename(prefixes[0])}.* along"
    )


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
