"""A local cache of decoded or encoded images, so that only the first epoch reads and decodes.

It is one data file that only grows, and an index of fixed-size entries. An entry is written after its data, so that a
killed process leaves a valid cache.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import struct
import threading
import weakref
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.file.urls import local_path

_ENTRY_FORMAT = struct.Struct("<qqqqqqq")  # number, offset, height, width, channels, size and time of the source file


class _Entry(NamedTuple):
    offset: int
    shape: tuple[int, ...]
    stamp: tuple[int, int]


def resolve_cache_dir(cache_dir: str | None, argument: str = "cache_dir") -> str | None:
    """Returns the local directory of `cache_dir`; `'ENV'` is the value of `DLS_LOCAL_CACHE_PATH`.

    Args:
      cache_dir: a path, `file:///path`, or `'ENV'`.
      argument: the name of the argument for error messages.

    Raises:
      ValueError: it is the url of an object store, or `'ENV'` and the variable is not set.

    Example:
      >>> resolve_cache_dir('/cache'), resolve_cache_dir('file:///cache'), resolve_cache_dir(None)
      ('/cache', '/cache', None)
    """
    if not cache_dir:
        return None
    if cache_dir != "ENV":
        return local_path(cache_dir, argument)
    directory = platform_cache_dir()
    if directory is None:
        raise ValueError(f"{argument}='ENV': the environment variable DLS_LOCAL_CACHE_PATH is not set.")
    return directory


def platform_cache_dir() -> str | None:
    """Returns the local directory in `DLS_LOCAL_CACHE_PATH`, if it is set.

    Example:
      >>> from unittest import mock
      >>> with mock.patch.dict(os.environ, DLS_LOCAL_CACHE_PATH='file:///cache'):
      ...     platform_cache_dir()
      '/cache'
    """
    named = os.environ.get("DLS_LOCAL_CACHE_PATH")
    return local_path(named, "DLS_LOCAL_CACHE_PATH") if named else None


class ArrayCache:
    """Arrays of bytes by number, in a directory below `cache_dir`.

    Args:
      cache_dir: the parent directory; created if missing.
      names: the names of the samples. Other names use another cache.
      form: the kind of content, such as 'decoded'. Another form uses another cache.
      remove_on_finish: whether to remove the files when the process ends.

    Example:
      >>> import tempfile
      >>> cache = ArrayCache(tempfile.mkdtemp(), ['a.jpg'], 'decoded')
      >>> cache.put(0, np.ones([2, 2, 3], np.uint8))
      >>> cache.get(0).shape, cache.get(1)
      ((2, 2, 3), None)
    """

    def __init__(self, cache_dir: str, names: Sequence[str], form: str, remove_on_finish: bool = True) -> None:
        digest = hashlib.blake2b(form.encode(), digest_size=12)
        for name in names:
            digest.update(os.fsencode(name) + b"\0")
        self.directory, self._index = _own_directory(os.path.join(cache_dir, f"moxing-{form}-{digest.hexdigest()}"))
        self._names = names
        self._lock = threading.Lock()
        self._data = os.open(os.path.join(self.directory, "data"), os.O_RDWR | os.O_CREAT, 0o644)
        # Not at exit, when a thread of TensorFlow may still be writing.
        for descriptor in (self._data, self._index):
            weakref.finalize(self, os.close, descriptor).atexit = False
        self._entries: dict[int, _Entry] = {}
        self._unchecked: set[int] = set()
        self._end = 0
        self._full = False
        self._load()
        if remove_on_finish:
            atexit.register(shutil.rmtree, self.directory, ignore_errors=True)

    def has(self, number: int) -> bool:
        """Returns whether the cache has the array of a sample."""
        entry = self._entries.get(number)
        return entry is not None and (number not in self._unchecked or self._is_fresh(number, entry))

    def get(self, number: int) -> np.ndarray | None:
        """Returns the array of a sample, or None."""
        entry = self._entries.get(number)
        if entry is None or (number in self._unchecked and not self._is_fresh(number, entry)):
            return None
        array: np.ndarray = np.empty(entry.shape, np.uint8)
        read = os.preadv(self._data, [array.data], entry.offset) if array.size else 0
        return array if read == array.size else None

    def put(self, number: int, array: np.ndarray) -> None:
        """Adds the array of a sample. A full disk ends the caching, not the training."""
        stamp = self._stamp(number)
        with self._lock:
            if self._full or number in self._entries:
                return
            offset, self._end = self._end, self._end + array.size
        try:
            view = memoryview(np.ascontiguousarray(array, np.uint8)).cast("B") if array.size else b""
            done = 0
            while done < array.size:
                done += os.pwrite(self._data, view[done:], offset + done)
            sizes = (*array.shape, *[-1] * (3 - array.ndim))
            packed = _ENTRY_FORMAT.pack(number, offset, *sizes, *stamp)
            if os.write(self._index, packed) < len(packed):
                raise OSError("the index is truncated")
        except OSError as error:
            self._full = True
            tf.logging.warning("Cannot write to the cache in %s (%s); continuing without it.", self.directory, error)
            return
        self._entries[number] = _Entry(offset, array.shape, stamp)

    def _load(self) -> None:
        """Loads the entries of an earlier process. Each is compared with its source file before it is used."""
        size = os.fstat(self._data).st_size
        content = os.pread(self._index, os.fstat(self._index).st_size, 0)
        usable = len(content) - len(content) % _ENTRY_FORMAT.size
        if usable < len(content):
            os.ftruncate(self._index, usable)
        for number, offset, *sizes, length, time in _ENTRY_FORMAT.iter_unpack(content[:usable]):
            shape = tuple(part for part in sizes if part >= 0)
            if offset + int(np.prod(shape)) <= size:
                self._entries[number] = _Entry(offset, shape, (length, time))
        self._unchecked = set(self._entries)
        self._end = size

    def _is_fresh(self, number: int, entry: _Entry) -> bool:
        if self._stamp(number) != entry.stamp:
            self._entries.pop(number, None)
        self._unchecked.discard(number)
        return number in self._entries

    def _stamp(self, number: int) -> tuple[int, int]:
        try:
            status = os.stat(self._names[number])
        except (OSError, IndexError):
            return 0, 0
        return status.st_size, status.st_mtime_ns


def _own_directory(path: str) -> tuple[str, int]:
    """Returns a directory that no other cache uses, `path` or a sibling of it, and its open index file.

    Two caches with one data file would overwrite each other's images.
    """
    copy = 1
    while True:
        directory = path if copy == 1 else f"{path}-{copy}"
        os.makedirs(directory, exist_ok=True)
        name = os.path.join(directory, "index")
        index = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(index, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(index)
            copy += 1
            continue
        if os.path.exists(name) and os.path.samestat(os.fstat(index), os.stat(name)):
            return directory, index
        # A process that has just ended has removed the directory.
        os.close(index)
