"""Checkpoints: plain TensorFlow V2 files, and beside each a small JSON with the place in the data.

The order makes a checkpoint whole: the variables, then the JSON, and only then the `checkpoint` file that names it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.flags import FLAGS, FlagError

#: Begins the names of the files of checkpoints.
PREFIX = "model.ckpt"
#: The file that names the checkpoints of a directory: one that is not in it does not count.
MARKER = "checkpoint"
#: Ending of the JSON beside a checkpoint.
POSITION_SUFFIX = ".moxing.json"

#: What TensorFlow's checkpoint reader raises for files that are cut, changed or gone: it depends on where they are.
UNREADABLE = (tf.errors.OpError, ValueError, LookupError, RuntimeError, OSError)


@dataclass(frozen=True)
class Position:
    """What a run must know, beside the variables, to go on as if it had never stopped.

    Attributes:
      elements: elements of the data that are used up; 0 also after the end of the data (the next run starts over).
      samples: for each data set of ours, the sample to go on with.
      seed: the run's random seed, which decides the order of shuffled data.
      hooks: what hooks remember, by their keys.
    """

    elements: int = 0
    seed: int | None = None
    samples: tuple[int, ...] = ()
    hooks: Mapping[str, Any] = field(default_factory=dict, compare=False)


START = Position()


@dataclass(frozen=True)
class Source:
    """A readable checkpoint.

    Attributes:
      prefix: its path, without the endings of its files.
      shapes: the shapes of its variables by name.
      dtypes: the types of its variables by name.
      resume: true when it stands in `log_dir` and the run goes on from it.
      position: the place in the data, for `resume`.
    """

    prefix: str
    shapes: Mapping[str, Sequence[int]]
    dtypes: Mapping[str, tf.DType]
    resume: bool = False
    position: Position = START


def newest(log_dir: str, with_position: bool = True, fetch: Callable[[str], None] | None = None) -> Source | None:
    """The newest undamaged checkpoint of a `log_dir`, or None; damaged ones are named and passed over.

    Args:
      log_dir: the directory.
      with_position: read the place in the data too, and warn where it is missing.
      fetch: brings the files of a checkpoint there, before they are looked at.
    """
    candidates = listed(log_dir)
    for prefix in candidates:
        if fetch is not None:
            fetch(prefix)
        try:
            reader = _read_all(prefix)
        except UNREADABLE as error:
            reason = (getattr(error, "message", "") or str(error)).splitlines()[0]
            tf.logging.warning("The checkpoint %s is damaged (%s); falling back to the one before it.", prefix, reason)
            continue
        return _source(prefix, reader, resume=True, position=_read_position(prefix) if with_position else START)
    if candidates:
        raise ValueError(
            f"All {len(candidates)} checkpoints in {log_dir} are damaged. Restore the files from a copy, give another "
            "log_dir, or train from the start with --restart."
        )
    return None


def named(path: str, fetch: Callable[[str], None] | None = None) -> Source:
    """The checkpoint that `checkpoint_path` names: a directory, or a prefix, V1 or V2 format.

    Args:
      path: the directory or prefix.
      fetch: brings the files of a checkpoint of the directory there, before they are looked at.
    """
    if os.path.isdir(path):
        found = newest(path, with_position=False, fetch=fetch)
        if found is None:
            raise ValueError(f"checkpoint_path={path!r}: the directory holds no checkpoint.")
        return replace(found, resume=False)
    prefix = without_ending(path)
    if not (os.path.exists(f"{prefix}.index") or os.path.isfile(prefix)):
        raise ValueError(
            f"checkpoint_path={path!r}: there is no such directory and no such checkpoint. Give the directory of a "
            "training, or a checkpoint's prefix such as log/model.ckpt-100."
        )
    try:
        reader = tf.train.NewCheckpointReader(prefix)
    except UNREADABLE as error:
        raise ValueError(f"checkpoint_path={path!r}: not a readable checkpoint: {error}.") from None
    return _source(prefix, reader)


def without_ending(path: str) -> str:
    """The prefix of the checkpoint that a file belongs to.

    Example:
      >>> without_ending('log/model.ckpt-100.data-00000-of-00001'), without_ending('log/model.ckpt-100')
      ('log/model.ckpt-100', 'log/model.ckpt-100')
    """
    return re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path)


def _source(prefix: str, reader: Any, resume: bool = False, position: Position = START) -> Source:
    return Source(prefix, reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map(), resume, position)


def set_aside(log_dir: str) -> None:
    """Moves the checkpoints of `log_dir` into a directory of their own, for a fresh start; once in a process."""
    if os.path.realpath(log_dir) in _set_aside:
        return
    _set_aside.add(os.path.realpath(log_dir))
    files = [name for name in sorted(_files(log_dir)) if name == MARKER or name.startswith(PREFIX)]
    if not files:
        return
    number = 1
    while os.path.exists(target := os.path.join(log_dir, f"before_restart_{number}")):
        number += 1
    os.makedirs(target)
    # The file that names the checkpoints goes first: without it a half-finished move is no checkpoint.
    for name in sorted(files, key=lambda name: name != MARKER):
        os.replace(os.path.join(log_dir, name), os.path.join(target, name))
    tf.logging.info("--restart: moved the checkpoints of %s to %s.", log_dir, target)


#: Directories that were set aside: what the process itself has trained since then stays.
_set_aside: set[str] = set()


class Keeper:
    """Writes checkpoints into `log_dir` and removes the oldest. Make it when the graph is complete.

    Args:
      log_dir: the directory, made if it is missing.
      seed: the run's seed, kept with every checkpoint.
      most: how many stay; None: `--keep_checkpoint_max`.

    Attributes:
      last: the newest checkpoint.
      hook_states: says what `Position.hooks` is to be.
    """

    def __init__(self, log_dir: str, seed: int | None, most: int | None = None) -> None:
        os.makedirs(log_dir, exist_ok=True)
        self._log_dir, self._seed = log_dir, seed
        self._most = FLAGS.get("keep_checkpoint_max") if most is None else most
        if self._most < 1:
            raise FlagError(f"--keep_checkpoint_max={self._most}: expected a number from 1.")
        self._saver = tf.train.Saver(max_to_keep=None)
        self._kept = list(reversed(listed(log_dir)))
        self.last: str | None = None
        self.hook_states: Callable[[], Mapping[str, Any]] = dict

    def save(self, session: tf.Session, global_step: int, elements: int, samples: Sequence[int] = ()) -> str:
        """Writes a checkpoint; it counts only when everything of it is on the disk."""
        base = os.path.join(self._log_dir, PREFIX)
        tf.logging.info("Saving checkpoints for %d into %s.", global_step, base)
        prefix = str(
            self._saver.save(session, base, global_step=global_step, write_meta_graph=False, write_state=False)
        )
        position = Position(elements, self._seed, tuple(samples), self.hook_states())
        file.write(prefix + POSITION_SUFFIX, json.dumps({"format": 1, **asdict(position)}))
        kept = [*(path for path in self._kept if path != prefix), prefix]
        old, self._kept = kept[: -self._most], kept[-self._most :]
        _commit(self._log_dir, self._kept)
        for path in old:
            _remove(path)
        self.last = prefix
        return prefix

    def remember(self, key: str, state: Mapping[str, Any]) -> None:
        """Adds what a hook must know later to what the newest checkpoint says of hooks."""
        path = f"{self.last}{POSITION_SUFFIX}"
        if os.path.exists(path):
            content = json.loads(file.read(path))
            content["hooks"] = {**content.get("hooks", {}), key: dict(state)}
            file.write(path, json.dumps(content))

    def restore(self, session: tf.Session) -> None:
        """Loads the newest checkpoint."""
        self._saver.restore(session, self.last)


def _commit(log_dir: str, prefixes: Sequence[str]) -> None:
    """Writes the `checkpoint` file, oldest first; names are relative, so that the directory can be moved."""
    file.write(os.path.join(log_dir, MARKER), marker_text([os.path.basename(prefix) for prefix in prefixes]))


def marker_text(names: Sequence[str]) -> str:
    """The content of the file that names the checkpoints of a directory, oldest first.

    Example:
      >>> print(marker_text(['model.ckpt-0']), end='')
      model_checkpoint_path: "model.ckpt-0"
      all_model_checkpoint_paths: "model.ckpt-0"
    """
    lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    return "\n".join(lines) + "\n"


def _remove(prefix: str) -> None:
    directory, base = os.path.split(prefix)
    for name in _files(directory):
        if name.startswith(base + "."):
            os.remove(os.path.join(directory, name))


def _files(directory: str) -> list[str]:
    return os.listdir(directory) if os.path.isdir(directory) else []


def listed(log_dir: str) -> list[str]:
    """Prefixes of the checkpoints in a directory, newest first."""
    try:
        state = tf.train.get_checkpoint_state(log_dir)
    except UNREADABLE:
        state = None
    if state is not None and state.all_model_checkpoint_paths:
        return list(reversed(state.all_model_checkpoint_paths))
    if state is not None and state.model_checkpoint_path:
        return [state.model_checkpoint_path]
    # The file that names them is missing or damaged: what is complete on the disk still counts.
    steps = [re.fullmatch(rf"{re.escape(PREFIX)}-(\d+)\.index", name) for name in _files(log_dir)]
    numbers = sorted((int(match.group(1)) for match in steps if match), reverse=True)
    return [os.path.join(log_dir, f"{PREFIX}-{number}") for number in numbers]


def _read_all(prefix: str) -> Any:
    """Opens a checkpoint; reading each variable once checks its sum, so damage shows before a run rests on it."""
    reader = tf.train.NewCheckpointReader(prefix)
    for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)
    return reader


def _read_position(prefix: str) -> Position:
    path = prefix + POSITION_SUFFIX
    if not os.path.exists(path):
        tf.logging.warning("%s is missing: the run goes on from the start of the data.", path)
        return Position()
    try:
        content = json.loads(file.read(path))
        samples = tuple(int(sample) for sample in content.get("samples", ()))
        hooks = dict(content.get("hooks", {}))
        return Position(elements=int(content["elements"]), seed=content["seed"], samples=samples, hooks=hooks)
    except (OSError, ValueError, KeyError, TypeError) as error:
        tf.logging.warning("%s cannot be read (%s): the run goes on from the start of the data.", path, error)
        return Position()
