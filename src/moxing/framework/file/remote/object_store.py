"""Files and directories on an object store, which has neither: a directory is a common prefix that ends in a slash."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial

from moxing.framework.file.entries import FileEntry, FileStatistics, make_statistics
from moxing.framework.file.progress import advance
from moxing.framework.file.remote.backend import Backend
from moxing.framework.file.remote.local_copy import LocalCopy
from moxing.framework.file.s3.clients import get_client
from moxing.framework.file.s3.etags import PART_SIZE, matches_etag, part_size_for
from moxing.framework.file.s3.object_client import ListedObject, ObjectClient, Upload

#: Up to this size, an upload is one request.
_MAX_SINGLE_PUT = 2 * PART_SIZE


class ObjectStore(Backend):
    """The backend of `s3://` and `obs://`, on top of an `ObjectClient`."""

    has_real_directories = False

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    def locate(self, path: str) -> tuple[object, str]:
        return self.client.identity()[0], path

    def can_copy_to(self, path: str, other: Backend, target: str) -> bool:
        if not isinstance(other, ObjectStore):
            return False
        # Other keys may have access to other objects of the same store.
        return self._scheme == other._scheme or self.client.identity() == other.client.identity()

    @cached_property
    def client(self) -> ObjectClient:
        """The client with the settings at the first use, so that one operation uses the same client throughout."""
        return get_client(self._scheme)

    def stat(self, path: str) -> FileStatistics | None:
        bucket, key = _split(path)
        if not key:
            return make_statistics(0, 0, True) if self.client.has_bucket(bucket) else None
        if not key.endswith("/") and (info := self.client.head(bucket, key)) is not None:
            return make_statistics(info.size, info.mtime_nsec, False)
        return make_statistics(0, 0, True) if self._has_prefix(bucket, _prefix(key)) else None

    def is_directory(self, path: str) -> bool:
        bucket, key = _split(path)
        return self._has_prefix(bucket, _prefix(key)) if key else self.client.has_bucket(bucket)

    def entries(self, path: str) -> list[FileEntry] | None:
        bucket, key = _split(path)
        prefix = _prefix(key)
        found: list[FileEntry] = []
        exists = False
        for page in self.client.list_pages(bucket, prefix, "/"):
            exists = exists or bool(page.objects or page.prefixes)
            # Skip an entry without a name, as in `a//b`: its path would be that of `a`.
            found += (FileEntry(name[len(prefix) : -1], True) for name in page.prefixes if name != f"{prefix}/")
            for item in page.objects:
                # Skip the marker object of the directory itself.
                if item.key != prefix:
                    found.append(_entry(item.key[len(prefix) :], item))
        return found if exists or (not key and self.client.has_bucket(bucket)) else None

    def tree(self, path: str) -> Iterator[FileEntry]:
        bucket, key = _split(path)
        prefix = _prefix(key)
        directories: set[str] = set()
        for item in self._list(bucket, prefix):
            relative = item.key[len(prefix) :]
            for position, letter in enumerate(relative):
                if letter == "/" and (directory := relative[:position]) not in directories:
                    directories.add(directory)
                    if directory and not directory.endswith("/"):
                        yield FileEntry(directory, True)
            if relative and not relative.endswith("/"):
                yield _entry(relative, item)

    def read(self, path: str) -> bytes | bytearray | None:
        found = self.read_version(path)
        return None if found is None else found[0]

    def read_version(self, path: str) -> tuple[bytes | bytearray, str] | None:
        bucket, key = _split(path)
        if not key or key.endswith("/"):
            return None
        found = self.client.get(bucket, key)
        return None if found is None else (found[0], found[1].etag)

    def read_range(self, path: str, start: int, end: int, version: str = "") -> bytes | bytearray | None:
        found = self.client.get(*_split(path), start, end, version or None)
        return None if found is None else found[0]

    def describe(self, path: str) -> FileEntry | None:
        info = self.client.head(*_split(path))
        if info is None:
            return None
        return FileEntry(path.rpartition("/")[2], False, info.size, info.mtime_nsec, info.etag)

    def matches_version(self, version: str, local_path: str) -> bool:
        return matches_etag(local_path, version)

    def write(self, path: str, data: bytes) -> None:
        bucket, key = self._split_file(path)
        if len(data) <= _MAX_SINGLE_PUT:
            self.client.put(bucket, key, data)
            return
        view = memoryview(data)
        step = part_size_for(len(data))
        self.start_upload(path).add_all(partial(bytes, view[n : n + step]) for n in range(0, len(data), step))

    def make_directory(self, path: str) -> None:
        bucket, key = _split(path)
        if not self.client.has_bucket(bucket):
            raise FileNotFoundError(errno.ENOENT, "there is no such bucket", f"{self._scheme}://{bucket}")
        if key:
            self.client.put(bucket, _prefix(key), b"")

    def remove_file(self, path: str) -> None:
        self.client.delete(*_split(path))

    def remove_tree(self, path: str) -> None:
        bucket, key = _split(path)
        self.client.delete_many(bucket, [item.key for item in self._list(bucket, _prefix(key))])

    def copy(self, source: str, target: str) -> bool:
        return self.client.copy(_split(source), *self._split_file(target))

    def upload(
        self, descriptor: int, path: str, concurrency: int = 4, before_part: Callable[[], object] | None = None
    ) -> None:
        bucket, key = self._split_file(path)
        before_part = before_part or _do_nothing
        before_part()
        size = os.fstat(descriptor).st_size
        if size <= _MAX_SINGLE_PUT:
            self.client.put(bucket, key, read_exactly(descriptor, 0, size))
            advance(size)
            return
        step = part_size_for(size)

        def parts() -> Iterator[Callable[[], bytes]]:
            for start in range(0, size, step):
                before_part()
                # The sending threads read it, so that only the parts in flight are in memory.
                yield partial(read_exactly, descriptor, start, min(step, size - start))

        self.start_upload(path, concurrency).add_all(parts())

    def download(self, path: str, target: str, length: int | None = None, concurrency: int = 4) -> bool:
        return self.client.download(*_split(path), target, length, concurrency)

    def open_reader(self, path: str) -> io.RawIOBase | None:
        from moxing.framework.file.remote.object_reader import ObjectReader

        bucket, key = _split(path)
        return ObjectReader.open(self.client, bucket, key) if key and not key.endswith("/") else None

    def open_writer(self, path: str) -> LocalCopy:
        from moxing.framework.file.remote.object_writer import ObjectWriter

        self._split_file(path)
        return ObjectWriter(self, path)

    def start_upload(self, path: str, concurrency: int = 4) -> Upload:
        """Starts an upload in parts."""
        return self.client.start_upload(*self._split_file(path), concurrency)

    def _split_file(self, path: str) -> tuple[str, str]:
        bucket, key = _split(path)
        if not key or key.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, "a directory, give the name of a file", f"{self._scheme}://{path}")
        return bucket, key

    def _list(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        for page in self.client.list_pages(bucket, prefix):
            yield from page.objects

    def _has_prefix(self, bucket: str, prefix: str) -> bool:
        page = next(self.client.list_pages(bucket, prefix, limit=1), None)
        return page is not None and bool(page.objects or page.prefixes)


def _do_nothing() -> None:
    """The default of `before_part`."""


def _entry(relative: str, item: ListedObject) -> FileEntry:
    return FileEntry(relative, False, item.size, item.mtime_nsec, item.etag)


def _split(path: str) -> tuple[str, str]:
    bucket, _, key = path.partition("/")
    return bucket, key


def _prefix(key: str) -> str:
    return key if not key or key.endswith("/") else key + "/"


def read_exactly(descriptor: int, start: int, count: int) -> bytes:
    """Reads bytes of an open file. A file that has become shorter is an error, not a shorter object.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryFile() as file:
      ...     _ = file.write(b'abc'), file.flush()
      ...     read_exactly(file.fileno(), 1, 2)
      b'bc'
    """
    content = os.pread(descriptor, count, start)
    while len(content) < count:
        more = os.pread(descriptor, count - len(content), start + len(content))
        if not more:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        content += more
    return content
