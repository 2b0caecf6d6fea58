"""A local directory that keeps objects of data sets, for several processes at once.

The name of a file is the hash of url and version, with the size behind it: what is outdated is not found, and what is
cut short is noticed. How much is in the directory stands in one small file, which is changed under a lock.
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

from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import MoxFileReadException, MoxFileRespException, not_exists
from moxing.framework.flags import FLAGS, FlagError
from moxing.framework.util.owned_directory import OwnedDirectory
from moxing.tensorflow.datasets.array_cache import platform_cache_dir, resolve_cache_dir
from moxing.tensorflow.datasets.stored.objects import (
    CHANGED,
    StoredObject,
    UnusableObjectError,
    describe_object,
    faults_of_objects,
    require_place,
)
from moxing.tensorflow.datasets.stored.patience import patiently

_USED = "used"  # the file with the number of bytes
_TEMPORARY = "moxing-data-"  # begins the names of directories of one process each
_CHECKSUM_BYTES = 4
_LEFT_BEHIND_SECONDS = 3600.0
#: When there is no room, it is looked for again after so long.
_SECONDS_FULL = 60.0
#: Removes a little more than is needed, so that it is not done for every object.
_SLACK = 0.02
_PARTS_AT_ONCE = 4
#: What a temporary cache leaves free of its disk at least, and which part of the disk if that is less.
_LEFT_FREE, _PART_LEFT_FREE = 5 * 10**9, 0.1
_DISK_TAKES_NO_MORE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


class DataCache:
    """Objects as files of a directory, up to a number of bytes.

    When it is full, files that were not used since this process began make room, the oldest first. If there are none,
    nothing more is kept: data that does not fit as a whole is better kept in part than replaced again and again.

    Args:
      directory: where; made if it is missing.
      limit: how many bytes of content it may hold.
      left_free: how many bytes of the disk it leaves to others.

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
        #: So many bytes are still to come of files that have their room already.
        self._under_way = 0
        self._started = _time_there(os.path.join(self.directory, _USED))
        self._counted = False
        #: There is no room for so many bytes, until then.
        self._full_for, self._full_until = 0, 0.0
        self._closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """From now on nothing is made in the directory: threads may go on after what ends the process has begun."""
        with self._lock:
            self._closed = True

    def read(self, item: StoredObject) -> bytes | None:
        """The content of an object, None if it is not here or damaged."""
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
        """Keeps the content of an object if there is room."""

        def fill(temporary: str) -> None:
            with open(temporary, "r+b") as stream:
                stream.write(content)
                stream.write(zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little"))

        path = self._path(item, "object")
        try:
            self._publish(path, f"{path}.{os.urandom(6).hex()}.tmp", len(content) + _CHECKSUM_BYTES, fill)
        except OSError as error:
            self._give_up(error)

    def find_file(self, item: StoredObject) -> str | None:
        """The path of a whole file that is here."""
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
        """The path of a whole file, which is fetched if need be; None where there is no room for it.

        Of several processes that want one file, one fetches it and the others wait.

        Raises:
          UnusableObjectError: It is missing, broken, or no longer the one that was listed.
          OSError: The store is away or refuses.
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
                # Always the same name, so that a fetch that was killed is continued.
                fetched = self._publish(path, f"{path}.tmp", item.length, lambda temporary: download(item, temporary))
                return path if fetched else None
        except OSError as error:
            of_the_store = isinstance(error, MoxFileReadException | MoxFileRespException)
            if of_the_store or error.errno not in _DISK_TAKES_NO_MORE:
                raise
            self._give_up(error)
            return None

    def discard_file(self, item: StoredObject) -> None:
        """Removes a file whose content is wrong."""
        self._discard(self._path(item, "file"))

    def _path(self, item: StoredObject, kind: str) -> str:
        text = f"{item.url}\0{item.version}".encode("utf-8", "surrogateescape")
        name = hashlib.blake2b(text, digest_size=20).hexdigest()
        return os.path.join(self.directory, name[:2], f"{name[2:]}-{item.length}.{kind}")

    def _publish(self, path: str, temporary: str, size: int, fill: Callable[[str], object]) -> bool:
        """Makes a file if there is room for it; it appears when it is complete."""
        if not self._reserve(temporary, size):
            return False
        try:
            fill(temporary)
            # Another process may have been as fast: then one of the two is counted twice, until the next count.
            os.replace(temporary, path)
        except BaseException:
            self._remove(temporary, size)
            raise
        finally:
            with self._lock:
                self._under_way -= size
        return True

    def _give_up(self, error: OSError) -> None:
        if self._full_until != float("inf"):
            tf.logging.warning(
                "The cache in %s takes no more (%s); the run goes on without.", self.directory, error.strerror or error
            )
        self._full_for, self._full_until = 0, float("inf")

    def _touch(self, path: str, status: os.stat_result) -> None:
        """Notes that a file is in use; once for each run, not for each epoch."""
        if status.st_mtime < self._started:
            with suppress(OSError):
                os.utime(path)

    def _discard(self, path: str) -> None:
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            return  # another process has removed it
        tf.logging.warning("%s in the cache is damaged and is fetched again.", path)
        self._remove(path, size)

    def _remove(self, path: str, size: int) -> None:
        with suppress(OSError):
            os.unlink(path)
            with _locked(os.path.join(self.directory, _USED)) as count:
                _write_count(count, max(0, (_read_count(count) or 0) - size))

    def _reserve(self, temporary: str, size: int) -> bool:
        """Makes an empty file that stands for `size` bytes, if they fit; whoever counts sees them from now on."""
        if size > self._limit or (size >= self._full_for and time.monotonic() < self._full_until):
            return False
        with self._lock, _locked(os.path.join(self.directory, _USED)) as count:
            if self._closed:
                return False
            used = _read_count(count)
            if used is None or not self._counted or used + size > self._limit:
                # A process that was killed has left its count wrong.
                used = self._count_and_make_room(size, temporary)
                self._counted = True
            reason = "--data_cache_gb" if used + size > self._limit else None
            if self._left_free and self._free() < size + self._left_free:
                reason = "the disk nearly is"
            if reason is not None:
                self._full_for, self._full_until = size, time.monotonic() + _SECONDS_FULL
                _write_count(count, used)
                tf.logging.info("The cache in %s is full (%s).", self.directory, reason)
                return False
            os.makedirs(os.path.dirname(temporary), exist_ok=True)
            with open(temporary, "wb") as stream:
                stream.truncate(size)
            _write_count(count, used + size)
            self._under_way += size
            return True

    def _free(self) -> int:
        return shutil.disk_usage(self.directory).free - self._under_way

    def _count_and_make_room(self, size: int, temporary: str) -> int:
        """What is in the directory beside `temporary`; if it has no room, files that are not in use are removed."""
        used = 0
        removable = []
        for entry, status in _kept_files(self.directory):
            if entry.path == temporary:
                continue  # a fetch that was killed left it, and now it is made again
            is_half = entry.name.endswith((".tmp", ".part"))
            if is_half and status.st_mtime < time.time() - _LEFT_BEHIND_SECONDS:
                with suppress(OSError):
                    os.unlink(entry.path)
                continue
            if entry.name.endswith(".part"):
                continue  # what it is to become is counted already
            used += status.st_size
            if status.st_mtime < self._started and not is_half:
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
    """Makes a local file of an object.

    Raises:
      UnusableObjectError: It is missing, broken, or no longer the one that was listed.
      OSError: The store is away or refuses.
    """
    place = require_place(item.url, "url")
    known = RemoteEntry("", False, item.length)
    with faults_of_objects():
        if not patiently(lambda: place.backend.download(place.path, target, known, _PARTS_AT_ONCE)):
            raise not_exists("url", item.url)
    # Looked at afterwards: if it is still the one that was listed, it was so while it was fetched.
    if describe_object(item.url) != item or os.path.getsize(target) != item.length:
        raise UnusableObjectError(CHANGED)


def data_cache() -> DataCache | None:
    """The cache that the flag `data_cache_dir` asks for, or None."""
    try:
        directory = resolve_cache_dir(FLAGS.get("data_cache_dir"), "--data_cache_dir")
    except ValueError as error:
        raise FlagError(str(error)) from None
    return _cache_in(directory, _limit()) if directory else None


def file_cache() -> DataCache:
    """The cache for files that are needed as a whole: that of the flag, or a directory for this process only."""
    return data_cache() or _temporary_cache(_limit())


def _limit() -> int:
    gigabytes = FLAGS.get("data_cache_gb")
    if not 0 < gigabytes * 1e9 < math.inf:
        raise FlagError(f"--data_cache_gb={gigabytes}: expected a number above 0, such as 100.")
    return int(gigabytes * 1e9)


@lru_cache(maxsize=8)
def _cache_in(directory: str, limit: int) -> DataCache:
    return DataCache(directory, limit)


@lru_cache(maxsize=8)
def _temporary_cache(limit: int) -> DataCache:
    directory = OwnedDirectory(platform_cache_dir() or tempfile.gettempdir(), _TEMPORARY)
    atexit.register(directory.remove)
    # Not the whole disk: the run has other things to write, and other processes have such a cache, too.
    disk = shutil.disk_usage(directory.path)
    left_free = min(_LEFT_FREE, int(_PART_LEFT_FREE * disk.total))
    cache = DataCache(directory.path, min(limit, disk.free // 2), left_free)
    atexit.register(cache.close)  # this comes before the removal
    return cache


def _kept_files(directory: str) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    with os.scandir(directory) as folders:
        names = [folder.path for folder in folders if len(folder.name) == 2 and folder.is_dir()]
    for name in names:
        with os.scandir(name) as entries:
            for entry in entries:
                if entry.name.endswith((".object", ".file", ".tmp", ".part")):
                    with suppress(FileNotFoundError):  # another process has removed it
                        yield entry, entry.stat()


def _time_there(path: str) -> float:
    """The time of the disk that a file is on, which on a network drive is not ours."""
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
