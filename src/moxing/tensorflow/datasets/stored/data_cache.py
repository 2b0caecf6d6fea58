"""A local directory that keeps objects of datasets, shared by several processes.

The name of a file is the hash of url and version, followed by the size: outdated files are not found, and truncated
ones are noticed. A small file holds the number of bytes in the directory; it is changed under a lock.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import hashlib
import math
import os
import shutil
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

import tensorflow.compat.v1 as tf

from moxing.framework.file.errors import MoxFileReadException, MoxFileRespException, not_exists
from moxing.framework.file.waiting import retry_while_unavailable
from moxing.framework.flags import FLAGS, FlagError
from moxing.framework.util.owned_directory import OwnedDirectory
from moxing.tensorflow.datasets.array_cache import platform_cache_dir, resolve_cache_dir
from moxing.tensorflow.datasets.stored.objects import (
    CHANGED,
    StoredObject,
    UnusableObjectError,
    describe_object,
    raise_object_faults,
    require_remote,
)

_USED = "used"  # the file with the number of bytes
_TEMPORARY = "moxing-data-"  # prefix of directories that belong to one process
_CHECKSUM_BYTES = 4
#: Unfinished files that are older are removed.
_LEFT_BEHIND_SECONDS = 3600.0
#: A full cache looks for room again after this time.
_SECONDS_FULL = 60.0
#: The share of the limit that is removed in addition, so that not every object needs a cleanup.
_SLACK = 0.02
_PARTS_AT_ONCE = 4
#: The bytes that a temporary cache leaves free on its disk, or this share of the disk if that is less.
_LEFT_FREE, _SHARE_LEFT_FREE = 5 * 10**9, 0.1
_DISK_NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


class DataCache:
    """Objects as files of a directory, up to a number of bytes.

    When it is full, files that were not used since this process started are removed, the oldest first. If there are
    none, nothing more is added: for data that does not fit, keeping a part is better than replacing it all the time.

    Args:
      directory: the directory; created if missing.
      limit: the maximum number of bytes in the cache.
      left_free: the number of bytes to leave free on the disk.

    Example:
      >>> cache = DataCache(tempfile.mkdtemp(), 1000)
      >>> item = StoredObject('s3://bucket/a.jpg', 5, 'etag')
      >>> cache.write(item, b'hello')
      >>> cache.read(item), cache.read(item._replace(version='other'))
      (b'hello', None)
    """

    def __init__(self, directory: str, limit: int, left_free: int = 0) -> None:
        self.directory = os.path.abspath(directory)
        os.makedirs(self.directory, exist_ok=True)
        self._limit, self._left_free = limit, left_free
        #: Bytes that are reserved but not written yet.
        self._reserved = 0
        self._started = _time_of_disk(os.path.join(self.directory, _USED))
        self._counted = False
        #: There is no room for files of this size, until this time.
        self._full_for, self._full_until = 0, 0.0
        self._closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stops writing to the directory: threads may still run while the process exits."""
        with self._lock:
            self._closed = True

    def read(self, item: StoredObject) -> bytes | None:
        """Returns the content of an object; None if it is not in the cache or damaged."""
        path = self._path(item, "object")
        try:
            with open(path, "rb") as stream:
                status, content = os.fstat(stream.fileno()), stream.read()
        except OSError:
            return None
        data = content[:-_CHECKSUM_BYTES]
        if len(data) != item.length or zlib.crc32(data) != int.from_bytes(content[-_CHECKSUM_BYTES:], "little"):
            self._discard(path)
            return None
        self._touch(path, status)
        return data

    def write(self, item: StoredObject, content: bytes) -> None:
        """Adds the content of an object if there is room."""

        def fill(temporary: str) -> None:
            with open(temporary, "r+b") as stream:
                stream.write(content)
                stream.write(zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little"))

        path = self._path(item, "object")
        try:
            self._publish(path, f"{path}.{os.urandom(6).hex()}.tmp", len(content) + _CHECKSUM_BYTES, fill)
        except OSError as error:
            self._disable(error)

    def find_file(self, item: StoredObject) -> str | None:
        """Returns the path of a file in the cache, or None."""
        path = self._path(item, "file")
        try:
            status = os.stat(path)
        except OSError:
            return None
        if status.st_size != item.length:
            self._discard(path)
            return None
        self._touch(path, status)
        return path

    def fetch_file(self, item: StoredObject) -> str | None:
        """Returns the path of a file, which is fetched if it is not in the cache; None if there is no room for it.

        If several processes need the file, one fetches it and the others wait.

        Raises:
          UnusableObjectError: the object is missing, broken, or no longer the version that was listed.
          OSError: the store is unreachable or denies access.
        """
        path = self._path(item, "file")
        try:
            with self._lock:
                if self._closed:
                    return None
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with _locked(f"{path}.lock"):
                found = self.find_file(item)
                if found is not None:
                    return found
                # Always the same name, so that a killed download is resumed.
                fetched = self._publish(path, f"{path}.tmp", item.length, lambda temporary: download(item, temporary))
                return path if fetched else None
        except OSError as error:
            from_store = isinstance(error, MoxFileReadException | MoxFileRespException)
            if from_store or error.errno not in _DISK_NOT_WRITABLE:
                raise
            self._disable(error)
            return None

    def discard_file(self, item: StoredObject) -> None:
        """Removes a file with wrong content."""
        self._discard(self._path(item, "file"))

    def _path(self, item: StoredObject, kind: str) -> str:
        text = f"{item.url}\0{item.version}".encode("utf-8", "surrogateescape")
        name = hashlib.blake2b(text, digest_size=20).hexdigest()
        return os.path.join(self.directory, name[:2], f"{name[2:]}-{item.length}.{kind}")

    def _publish(self, path: str, temporary: str, size: int, fill: Callable[[str], object]) -> bool:
        """Writes a file if there is room for it. It gets its name when it is complete."""
        if not self._reserve(temporary, size):
            return False
        try:
            fill(temporary)
            # Another process may have written the same file: then it counts twice until the next count.
            os.replace(temporary, path)
        except BaseException:
            self._remove(temporary, size)
            raise
        finally:
            with self._lock:
                self._reserved -= size
        return True

    def _disable(self, error: OSError) -> None:
        if self._full_until != float("inf"):
            tf.logging.warning(
                "Cannot write to the cache in %s (%s); continuing without it.", self.directory, error.strerror or error
            )
        self._full_for, self._full_until = 0, float("inf")

    def _touch(self, path: str, status: os.stat_result) -> None:
        """Marks a file as used; once per run, not per epoch."""
        if status.st_mtime < self._started:
            with suppress(OSError):
                os.utime(path)

    def _discard(self, path: str) -> None:
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            return  # another process has removed it
        tf.logging.warning("%s in the cache is damaged; fetching it again.", path)
        self._remove(path, size)

    def _remove(self, path: str, size: int) -> None:
        with suppress(OSError):
            os.unlink(path)
            with _locked(os.path.join(self.directory, _USED)) as count:
                _write_count(count, max(0, (_read_count(count) or 0) - size))

    def _reserve(self, temporary: str, size: int) -> bool:
        """Creates an empty file of `size` bytes if they fit, so that other processes count them."""
        if size > self._limit or (size >= self._full_for and time.monotonic() < self._full_until):
            return False
        with self._lock, _locked(os.path.join(self.directory, _USED)) as count:
            if self._closed:
                return False
            used = _read_count(count)
            if used is None or not self._counted or used + size > self._limit:
                # A killed process may have left a wrong count.
                used = self._count_and_make_room(size, temporary)
                self._counted = True
            reason = "--data_cache_gb" if used + size > self._limit else None
            if self._left_free and self._free() < size + self._left_free:
                reason = "the disk is nearly full"
            if reason is not None:
                self._full_for, self._full_until = size, time.monotonic() + _SECONDS_FULL
                _write_count(count, used)
                tf.logging.info("The cache in %s is full (%s).", self.directory, reason)
                return False
            os.makedirs(os.path.dirname(temporary), exist_ok=True)
            with open(temporary, "wb") as stream:
                stream.truncate(size)
            _write_count(count, used + size)
            self._reserved += size
            return True

    def _free(self) -> int:
        return shutil.disk_usage(self.directory).free - self._reserved

    def _count_and_make_room(self, size: int, temporary: str) -> int:
        """Returns the bytes in the directory without `temporary`; removes unused files if there is no room."""
        used = 0
        removable = []
        for entry, status in _cached_files(self.directory):
            if entry.path == temporary:
                continue  # left by a killed download, and now written again
            is_unfinished = entry.name.endswith((".tmp", ".part"))
            if is_unfinished and status.st_mtime < time.time() - _LEFT_BEHIND_SECONDS:
                with suppress(OSError):
                    os.unlink(entry.path)
                continue
            if entry.name.endswith(".part"):
                continue  # the file that it will become is counted already
            used += status.st_size
            if status.st_mtime < self._started and not is_unfinished:
                removable.append((status.st_mtime, status.st_size, entry.path))
        if used + size <= self._limit:
            return used
        removable.sort()
        for _, length, path in removable:
            if used + size + _SLACK * self._limit <= self._limit:
                break
            with suppress(OSError):
                os.unlink(path)
                used -= length
        return used


def download(item: StoredObject, target: str) -> None:
    """Downloads an object.

    Raises:
      UnusableObjectError: the object is missing, broken, or no longer the version that was listed.
      OSError: the store is unreachable or denies access.
    """
    remote = require_remote(item.url, "url")
    with raise_object_faults():
        if not retry_while_unavailable(
            lambda: remote.backend.download(remote.path, target, item.length, _PARTS_AT_ONCE)
        ):
            raise not_exists("url", item.url)
    # Checked afterwards: if it still is the version that was listed, it was so during the download.
    if describe_object(item.url) != item or os.path.getsize(target) != item.length:
        raise UnusableObjectError(CHANGED)


def data_cache() -> DataCache | None:
    """Returns the cache of the flag `data_cache_dir`, or None."""
    try:
        directory = resolve_cache_dir(FLAGS.get("data_cache_dir"), "--data_cache_dir")
    except ValueError as error:
        raise FlagError(str(error)) from None
    return _cache_in(directory, _limit()) if directory else None


def file_cache() -> DataCache:
    """Returns the cache for whole files: that of the flag, or a temporary directory of this process."""
    return data_cache() or _temporary_cache(_limit())


def _limit() -> int:
    gigabytes = FLAGS.get("data_cache_gb")
    if not 0 < gigabytes * 1e9 < math.inf:
        raise FlagError(f"--data_cache_gb={gigabytes}: expected a positive number, such as 100.")
    return int(gigabytes * 1e9)


@lru_cache(maxsize=8)
def _cache_in(directory: str, limit: int) -> DataCache:
    return DataCache(directory, limit)


@lru_cache(maxsize=8)
def _temporary_cache(limit: int) -> DataCache:
    directory = OwnedDirectory(platform_cache_dir() or tempfile.gettempdir(), _TEMPORARY)
    atexit.register(directory.remove)
    # Not the whole disk: the run writes other files, and other processes have such a cache too.
    disk = shutil.disk_usage(directory.path)
    left_free = min(_LEFT_FREE, int(_SHARE_LEFT_FREE * disk.total))
    cache = DataCache(directory.path, min(limit, disk.free // 2), left_free)
    atexit.register(cache.close)  # runs before the removal
    return cache


def _cached_files(directory: str) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    with os.scandir(directory) as folders:
        names = [folder.path for folder in folders if len(folder.name) == 2 and folder.is_dir()]
    for name in names:
        with os.scandir(name) as entries:
            for entry in entries:
                if entry.name.endswith((".object", ".file", ".tmp", ".part")):
                    with suppress(FileNotFoundError):  # another process has removed it
                        yield entry, entry.stat()


def _time_of_disk(path: str) -> float:
    """Returns the clock of the disk that a file is on; on a network drive it may differ from ours."""
    with suppress(OSError):
        with open(path, "a"):
            os.utime(path)
        return os.stat(path).st_mtime
    return time.time()


@contextmanager
def _locked(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_count(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0)
    return int(text) if text.strip().isdigit() else None


def _write_count(descriptor: int, count: int) -> None:
    os.pwrite(descriptor, f"{count:<31d}\n".encode(), 0)
