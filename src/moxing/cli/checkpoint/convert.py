"""`moxing checkpoint convert`: writes a checkpoint in the V2 format; changes types and names, excludes variables."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.cli.checkpoint.reading import Checkpoint, Kind, compiled, cpu_only, listed, open_checkpoint, reason, select
from moxing.cli.output import megabytes, show
from moxing.framework import file
from moxing.tensorflow.executor.checkpoints.files import POSITION_SUFFIX

#: Bytes of variables that are in memory at a time and written to one file.
_SHARD = 256 << 20


class _Conversion:
    """Converts the variables of a checkpoint.

    Args:
      source: the checkpoint.
      names: the new name of each variable; variables without one are excluded.
      dtype: type of the floating-point variables; None keeps all types.
      clip: whether to clip values that do not fit; otherwise they are an error.

    Attributes:
      clipped: the number of clipped values of each variable.
      vanished: the number of values of each variable that were rounded to 0.
    """

    def __init__(self, source: Checkpoint, names: Mapping[str, str], dtype: tf.DType | None, clip: bool) -> None:
        self.source, self.names, self.dtype, self._clip = source, names, dtype, clip
        self.clipped: dict[str, int] = {}
        self.vanished: dict[str, int] = {}

    def kind(self, name: str) -> Kind:
        """Returns the shape and the new type of a variable."""
        old = self.source.variables[name]
        return Kind(old.shape, self.dtype if self.dtype is not None and old.dtype.is_floating else old.dtype)

    def values(self, name: str) -> np.ndarray:
        """Returns the new values of a variable."""
        values, dtype = self.source.read(name), self.kind(name).dtype
        if dtype == self.source.variables[name].dtype:
            return values
        with np.errstate(over="ignore", invalid="ignore"):
            result = values.astype(dtype.as_numpy_dtype)
        overflown = np.isinf(result) & np.isfinite(values)
        if overflown.any():
            largest = float(np.abs(values[np.isfinite(values)].astype(np.float64)).max())
            if not self._clip:
                raise ValueError(
                    f"--dtype={dtype.name}: {int(overflown.sum()):,} values of {name} do not fit: the largest is "
                    f"{largest:g}, the maximum of {dtype.name} is {float(dtype.max):g}. Use --clip to clip them, or "
                    "--exclude to exclude the variable."
                )
            result[overflown] = np.where(values[overflown] > 0, dtype.max, -dtype.max)
            self.clipped[name] = int(overflown.sum())
        vanished = int(((result == 0) & (values != 0)).sum())
        if vanished:
            self.vanished[name] = vanished
        return result


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    target = _checked_target(arguments.target)
    if arguments.clip and arguments.dtype is None:
        raise ValueError("--clip needs --dtype.")
    source = open_checkpoint(arguments.source, "SOURCE")
    _check_free(target, arguments.overwrite)
    names = _new_names(source, arguments.like, arguments.exclude, arguments.rename)
    dtype = None if arguments.dtype is None else tf.as_dtype(arguments.dtype)
    conversion = _Conversion(source, names, dtype, arguments.clip)
    directory = os.path.dirname(target) or "."
    is_new = not os.path.isdir(directory)
    os.makedirs(directory, exist_ok=True)
    # In the directory of the target, so that the files can be renamed.
    temporary = tempfile.mkdtemp(prefix=f".{os.path.basename(target)}.", suffix=".unfinished", dir=directory)
    try:
        written = os.path.join(temporary, "checkpoint")
        _write(written, conversion)
        _compare(written, conversion)
        if os.path.isfile(source.prefix + POSITION_SUFFIX):
            shutil.copyfile(source.prefix + POSITION_SUFFIX, written + POSITION_SUFFIX)
        _check_free(target, arguments.overwrite)
        _rename(written, target, os.path.join(temporary, "replaced"))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if is_new and not os.listdir(directory):
            os.rmdir(directory)
    if arguments.state:
        _write_state(target)
    _show_result(target, conversion, arguments.state)
    return 0


def _checked_target(target: str) -> str:
    example = os.path.join(re.sub(r"/+$", "", target) or "new", "model.ckpt")
    if "://" in target:
        raise ValueError(f"TARGET={target!r} is a url. Write to a local path, then copy it with `moxing file cp`.")
    if not target or target.endswith("/") or os.path.isdir(target):
        raise ValueError(f"TARGET={target!r} is a directory. Expected a prefix, such as {example}.")
    if re.search(r"\.(index|meta|data-\d{5}-of-\d{5})$", target):
        raise ValueError(f"TARGET={target!r} is one file of a checkpoint. Expected the prefix, without the suffix.")
    if set(target) & set("*?[]\\"):
        raise ValueError(
            f"TARGET={target!r}: TensorFlow cannot read a checkpoint whose path contains one of * ? [ ] \\."
        )
    return target


def _check_free(target: str, overwrite: bool) -> None:
    there = [*_files_of(target), *([target] if os.path.lexists(target) else [])]
    if there and not overwrite:
        raise ValueError(f"TARGET={target!r}: {there[0]!r} exists. Use --overwrite to replace it.")


def _files_of(prefix: str) -> list[str]:
    """Returns index and data files of a checkpoint, whether they belong together or not."""
    directory, base = os.path.split(prefix)
    known = re.compile(re.escape(base) + r"\.(index|data-\d{5}-of-\d{5})")
    names = sorted(os.listdir(directory or ".")) if os.path.isdir(directory or ".") else []
    return [os.path.join(directory, name) for name in names if known.fullmatch(name)]


def _new_names(source: Checkpoint, like: str | None, exclude: str | None, renames: Sequence[str]) -> dict[str, str]:
    names = list(source.variables)
    if like is not None:
        names = select(names, like, "--like")
    if exclude is not None:
        dropped = set(select(names, exclude, "--exclude"))
        names = [name for name in names if name not in dropped]
    if not names:
        raise ValueError(f"--exclude={exclude!r} excludes all variables.")
    result = {name: name for name in names}
    for rename in renames:
        result = _renamed(result, rename)
    olds: dict[str, str] = {}
    for old, new in result.items():
        if not new:
            raise ValueError(f"--rename: the new name of {old} is empty.")
        if new in olds:
            raise ValueError(f"--rename: {olds[new]} and {old} would both be called {new}.")
        olds[new] = old
    return result


def _renamed(names: Mapping[str, str], rename: str) -> dict[str, str]:
    # Split at the last "=": a regular expression may contain one, in (?=...); a name hardly ever does.
    before, equals, after = rename.rpartition("=")
    if not equals or not before:
        raise ValueError(f"--rename={rename!r}: expected FROM=TO, such as ^resnet_v1_50/=backbone/.")
    pattern = compiled(before, "--rename")
    if not any(pattern.search(name) for name in names.values()):
        raise ValueError(f"--rename={rename!r}: {before!r} matches none of the {len(names):,} names.")
    try:
        return {old: pattern.sub(after, new) for old, new in names.items()}
    except (re.error, IndexError) as error:
        raise ValueError(f"--rename={rename!r}: {after!r} is not a valid replacement: {error}.") from None


def _shards(conversion: _Conversion) -> Iterator[list[str]]:
    """Yields groups of variables that fit into memory together."""
    group: list[str] = []
    size = 0
    for name in conversion.names:
        new = conversion.kind(name).bytes
        if group and size + new > _SHARD:
            yield group
            group, size = [], 0
        group.append(name)
        size += new
    yield group


def _write(prefix: str, conversion: _Conversion) -> None:
    parts = []
    try:
        for number, group in enumerate(_shards(conversion)):
            parts.append(f"{prefix}.part-{number}")
            with tf.Graph().as_default(), tf.Session(config=cpu_only()) as session:
                kinds = [conversion.kind(name) for name in group]
                inputs = [tf.placeholder(kind.dtype, kind.shape) for kind in kinds]
                save = tf.raw_ops.SaveV2(
                    prefix=parts[-1],
                    tensor_names=[conversion.names[name] for name in group],
                    shape_and_slices=[""] * len(group),
                    tensors=inputs,
                )
                session.run(save, dict(zip(inputs, map(conversion.values, group), strict=True)))
        with tf.Graph().as_default(), tf.Session(config=cpu_only()) as session:
            session.run(
                tf.raw_ops.MergeV2Checkpoints(
                    checkpoint_prefixes=parts, destination_prefix=prefix, delete_old_dirs=False
                )
            )
    except tf.errors.OpError as error:
        raise ValueError(f"TARGET: the checkpoint could not be written ({reason(error)}).") from None


def _compare(prefix: str, conversion: _Conversion) -> None:
    """Reads the new checkpoint back and compares it, to find errors of disk or memory before it gets its name."""
    written = open_checkpoint(prefix, "TARGET")
    expected = {new: conversion.kind(old) for old, new in conversion.names.items()}
    if dict(written.variables) != expected:
        raise ValueError("TARGET: the written checkpoint has the wrong variables. Nothing was changed; try again.")
    for old, new in conversion.names.items():
        before, after = conversion.values(old), written.read(new)
        if before.dtype != after.dtype or not _equal(before, after):
            raise ValueError(f"TARGET: {new} was not written correctly. Nothing was changed; try again.")


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    # Compare bytes, so that NaN equals NaN. An array of text has only references.
    if a.dtype == object:
        return bool(a.tolist() == b.tolist())
    return bool(np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)))


def _rename(written: str, target: str, replaced: str) -> None:
    """Renames the new files. At no time does an index exist without all of its data.

    Args:
      written: prefix of the new files.
      target: their new prefix.
      replaced: directory for the files that are replaced; they are restored if anything fails.
    """
    index = ".index"
    endings = [
        path.removeprefix(written) for path in [*_files_of(written), written + POSITION_SUFFIX] if os.path.exists(path)
    ]
    endings.sort(key=lambda ending: ending == index)
    for ending in endings:
        with open(written + ending, "rb") as stream:
            os.fsync(stream.fileno())
    old = [path for path in [*_files_of(target), target + POSITION_SUFFIX, target] if os.path.lexists(path)]
    moves = [(path, os.path.join(replaced, os.path.basename(path))) for path in old]
    moves.sort(key=lambda move: move[0] != target + index)
    moves += [(written + ending, target + ending) for ending in endings]
    os.mkdir(replaced)
    directory = os.path.dirname(target) or "."
    done: list[tuple[str, str]] = []
    try:
        for before, after in moves:
            if after == target + index:
                _flush(directory)
            os.replace(before, after)
            done.append((before, after))
            if before == target + index:
                _flush(directory)
        _flush(directory)
    except BaseException:
        for before, after in reversed(done):
            os.replace(after, before)
        raise


def _flush(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_state(target: str) -> None:
    directory, base = os.path.split(os.path.abspath(target))
    others = [os.path.relpath(path, directory) for path in reversed(listed(directory))]
    # Without the directory, so that the directory can be moved.
    paths = [*(path for path in others if path != base), base]
    state = tf.train.generate_checkpoint_state_proto(directory, base, all_model_checkpoint_paths=paths)
    file.write(os.path.join(directory, "checkpoint"), str(state))


def _show_result(target: str, conversion: _Conversion, state: bool) -> None:
    files = _files_of(target)
    source, count = conversion.source, len(conversion.names)
    excluded = len(source.variables) - count
    size = sum(map(os.path.getsize, files))
    show(f"{target}: {count:,} variables, {len(files)} files, {size:,} bytes ({megabytes(size)}), V2 format")
    if excluded:
        show(f"Excluded: {excluded:,} variables")
    changed = sum(conversion.kind(name) != source.variables[name] for name in conversion.names)
    if changed and conversion.dtype is not None:
        show(f"Converted to {conversion.dtype.name}: {changed:,} variables")
    renamed = [(old, new) for old, new in conversion.names.items() if old != new]
    if renamed:
        show(f"Renamed: {len(renamed):,} variables, such as {renamed[0][0]} to {renamed[0][1]}")
    for word, counts in (("Clipped", conversion.clipped), ("Rounded to 0", conversion.vanished)):
        if counts:
            most = max(counts, key=lambda name: counts[name])
            show(f"{word}: {sum(counts.values()):,} values of {len(counts):,} variables, most in {most}")
    if state:
        show(f"Latest checkpoint in {os.path.join(os.path.dirname(target), 'checkpoint')}")
