"""Keeps the index of TFRecord files in a file, so that the next run need not scan them again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.file.atomic_write import replace_file
from moxing.tensorflow.datasets.tfrecord.record_files import FRAME_BYTES, INDEX_DIRECTORY, Damage, RecordScan

_CACHE_VERSION = 1


class IndexCache:
    """The scans of a set of files, kept in one file. Scans of files that have changed since are not used."""

    def __init__(self, paths: Sequence[str], cache_dir: str | None) -> None:
        self._paths = list(paths)
        absolute = [os.path.abspath(path) for path in paths]
        directory = os.path.dirname(absolute[0])
        # Relative names, so that the index stays valid when the directory is moved or mounted elsewhere.
        self._names = [os.path.relpath(path, directory) for path in absolute]
        if cache_dir is not None:
            self._candidates = [os.path.join(cache_dir, index_name(absolute))]
        else:
            user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
            self._candidates = [
                os.path.join(directory, INDEX_DIRECTORY, index_name(self._names)),
                os.path.join(user, "moxing", "index", index_name(absolute)),
            ]

    def load(self) -> dict[str, RecordScan]:
        """Returns the scans of the files that have not changed, by path."""
        valid: dict[str, RecordScan] = {}
        for candidate in self._candidates:
            known = _load_scans(candidate, dict(zip(self._names, self._paths, strict=True)))
            for path in self._paths:
                if path in known and path not in valid:
                    status = os.stat(path)
                    if (status.st_size, status.st_mtime_ns) == (known[path].size, known[path].mtime_ns):
                        valid[path] = known[path]
            if len(valid) == len(self._paths):
                break
        return valid

    def save(self, scans: Mapping[str, RecordScan]) -> None:
        """Saves the scans in the first directory that is writable."""
        arrays = scans_to_arrays(self._names, [scans[path] for path in self._paths])
        for candidate in self._candidates:
            try:
                os.makedirs(os.path.dirname(candidate), exist_ok=True)
                replace_file(candidate, "cache_dir", lambda stream: np.savez(stream, **arrays))
                return
            except OSError as error:
                tf.logging.debug("The index of the tfrecord files cannot be kept in %s: %s", candidate, error)


def index_name(names: Iterable[str]) -> str:
    """Returns the file name of the index of these files."""
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:20] + ".npz"


def scans_to_arrays(names: Sequence[str], scans: Sequence[RecordScan]) -> dict[str, Any]:
    """Returns the arrays of an index file."""
    damages = [[(damage.offset, damage.length, damage.reason) for damage in found.damages] for found in scans]
    return {
        "version": np.array(_CACHE_VERSION),
        "names": np.array(json.dumps(list(names))),
        "sizes": np.array([found.size for found in scans], np.int64),
        "mtimes_ns": np.array([found.mtime_ns for found in scans], np.int64),
        "counts": np.array([len(found.offsets) for found in scans], np.int64),
        "offsets": np.concatenate([found.offsets for found in scans]),
        "lengths": np.concatenate([found.lengths for found in scans]),
        "damages": np.array(json.dumps(damages)),
    }


def _load_scans(index_file: str, paths: Mapping[str, str]) -> dict[str, RecordScan]:
    """Returns the scans in `index_file` by path (`paths` maps names to paths); none if the file is damaged."""
    try:
        with open(index_file, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return scans_from_arrays({key: stored[key] for key in stored.files}, paths)
    except FileNotFoundError:
        return {}
    except Exception as error:  # damage raises many kinds of errors; all of them just mean to scan again
        tf.logging.debug("The index of tfrecord files in %s is not usable: %s", index_file, error)
        return {}


def scans_from_arrays(arrays: Mapping[str, np.ndarray], paths: Mapping[str, str]) -> dict[str, RecordScan]:
    """Returns the scans in the arrays of an index file, by path; none if another version wrote it."""
    if int(arrays["version"]) != _CACHE_VERSION:
        return {}
    ends = np.cumsum(arrays["counts"])
    offsets, lengths = np.split(arrays["offsets"], ends[:-1]), np.split(arrays["lengths"], ends[:-1])
    names, damages = json.loads(str(arrays["names"])), json.loads(str(arrays["damages"]))
    sizes, mtimes = arrays["sizes"].tolist(), arrays["mtimes_ns"].tolist()
    scans = {}
    for i, name in enumerate(names):
        path = paths[name]
        if (offsets[i] < 0).any() or (offsets[i] + lengths[i] + FRAME_BYTES > sizes[i]).any():
            raise ValueError(f"records of {name} are outside the file")
        found = tuple(Damage(path, int(offset), int(length), str(reason)) for offset, length, reason in damages[i])
        scans[path] = RecordScan(sizes[i], mtimes[i], offsets[i], lengths[i], found)
    return scans
