"""Files and directories on an S3 store, which knows neither: a directory is what keys have in common up to a slash."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial

from moxing.framework.file.auth import get_client
from moxing.framework.file.backends import Backend
from moxing.framework.file.entries import FileStatistics, RemoteEntry, make_statistics
from moxing.framework.file.progress import advance
from moxing.framework.file.remote_writing import LocalCopy, ObjectWriter
from moxing.framework.file.s3_client import Client
from moxing.framework.file.s3_multipart import PART_SIZE, MultipartUpload, part_size_for

#: Up to this an upload from a file is one request.
_SINGLE_PUT = 2 * PART_SIZE


class ObjectStore(Backend):
    """The store that `s3://` or `obs://` urls lead to."""

    has_real_directories = False

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    def locate(self, path: str) -> tuple[object, str]:
        return self.client.access.endpoint, path

    def can_copy_to(self, path: str, other: Backend, target: str) -> bool:
        if not isinstance(other, ObjectStore):
            return False
        # Other keys may be for other objects of the same store.
        return self._scheme == other._scheme or self.client.access == other.client.access

    @cached_property
    def client(self) -> Client:
        """The client with the settings of the moment when it is first needed: an operation has one from end to end."""
        return get_client(self._scheme)

    def stat(self, path: str) -> FileStatistics | None:
        bucket, key = _split(path)
        client = self.client
        if not key:
            return make_statistics(0, 0, True) if client.has_bucket(bucket) else None
        if not key.endswith("/") and (info := client.head(bucket, key)) is not None:
            return make_statistics(info.size, info.mtime_nsec, False)
        return make_statistics(0, 0, True) if _has_prefix(client, bucket, _prefix(key)) else None

    def is_directory(self, path: str) -> bool:
        bucket, key = _split(path)
        return _has_prefix(self.client, bucket, _prefix(key)) if key else self.client.has_bucket(bucket)

    def entries(self, path: str) -> list[RemoteEntry] | None:
        bucket, key = _split(path)
        prefix = _prefix(key)
        found: list[RemoteEntry] = []
        exists = False
        for page in self.client.list_pages(bucket, prefix, "/"):
            exists = exists or bool(page.objects or page.prefixes)
            # What has no name, as the directory of `b` in `a//b`, is not in it: its path would be that of `a`.
            found += (RemoteEntry(name[len(prefix) : -1], True) for name in page.prefixes if name != f"{prefix}/")
            for item in page.objects:
                # The marker of the directory itself is not in it.
                if item.key != prefix:
                    name = item.key[len(prefix) :]
                    found.append(RemoteEntry(name, False, item.size, item.mtime_nsec, item.etag))
        return found if exists or (not key and self.client.has_bucket(bucket)) else None

    def tree(self, path: str) -> Iterator[RemoteEntry]:
        bucket, key = _split(path)
        prefix = _prefix(key)
        directories: set[str] = set()
        for item in self.client.list_objects(bucket, prefix):
            relative = item.key[len(prefix) :]
            for position, letter in enumerate(relative):
                if letter == "/" and (directory := relative[:position]) not in directories:
                    directories.add(directory)
                    if directory and not directory.endswith("/"):
                        yield RemoteEntry(directory, True)
            if relative and not relative.endswith("/"):
                yield RemoteEntry(relative, False, item.size, item.mtime_nsec, item.etag)

    def read(self, path: str) -> bytes | bytearray | None:
        bucket, key = _split(path)
        if not key or key.endswith("/"):
            return None
        found = self.client.get(bucket, key)
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

    def describe(self, path: str) -> RemoteEntry | None:
        info = self.client.head(*_split(path))
        if info is None:
            return None
        return RemoteEntry(path.rpartition("/")[2], False, info.size, info.mtime_nsec, info.etag)

    def write(self, path: str, data: bytes) -> None:
        bucket, key = self._file(path)
        if len(data) <= _SINGLE_PUT:
            self.client.put(bucket, key, data)
            return
        upload = self.start_upload(path)
        view = memoryview(data)
        step = part_size_for(len(data))
        upload.send_all(partial(bytes, view[start : start + step]) for start in range(0, len(data), step))

    def make_directory(self, path: str) -> None:
        bucket, key = _split(path)
        client = self.client
        if not client.has_bucket(bucket):
            raise FileNotFoundError(errno.ENOENT, "there is no such bucket", f"{self._scheme}://{bucket}")
        if key:
            client.put(bucket, _prefix(key), b"")

    def remove_file(self, path: str) -> None:
        self.client.delete(*_split(path))

    def remove_tree(self, path: str) -> None:
        bucket, key = _split(path)
        client = self.client
        client.delete_many(bucket, [item.key for item in client.list_objects(bucket, _prefix(key))])

    def copy(self, source: str, target: str) -> bool:
        return self.client.copy(_split(source), *self._file(target))

    def upload(self, descriptor: int, path: str, at_once: int = 4, check: Callable[[], object] | None = None) -> None:
        bucket, key = self._file(path)
        check = check or _nothing
        check()
        client, size = self.client, os.fstat(descriptor).st_size
        if size <= _SINGLE_PUT:
            client.put(bucket, key, read_exactly(descriptor, 0, size))
            advance(size)
            return
        step = part_size_for(size)

        def parts() -> Iterator[Callable[[], bytes]]:
            for start in range(0, size, step):
                check()
                # Read by the threads that send: only what is under way is in memory.
                yield partial(read_exactly, descriptor, start, min(step, size - start))

        self.start_upload(path, at_once).send_all(parts())

    def download(self, path: str, target: str, known: RemoteEntry | None = None, at_once: int = 4) -> bool:
        from moxing.framework.file.downloads import download

        return download(self.client, *_split(path), target, known, at_once)

    def open_reader(self, path: str) -> io.RawIOBase | None:
        from moxing.framework.file.remote_reading import ObjectReader

        bucket, key = _split(path)
        return ObjectReader.open(self.client, bucket, key) if key and not key.endswith("/") else None

    def open_writer(self, path: str) -> LocalCopy:
        self._file(path)
        return ObjectWriter(self, path)

    def start_upload(self, path: str, at_once: int = 4) -> MultipartUpload:
        """An upload in parts to this path."""
        return MultipartUpload(self.client, *self._file(path), at_once)

    def _file(self, path: str) -> tuple[str, str]:
        bucket, key = _split(path)
        if not key or key.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, "a directory, give the name of a file", f"{self._scheme}://{path}")
        return bucket, key


def _nothing() -> None:
    """What is called where nobody wants to be."""


def _split(path: str) -> tuple[str, str]:
    bucket, _, key = path.partition("/")
    return bucket, key


def _prefix(key: str) -> str:
    return key if not key or key.endswith("/") else key + "/"


def _has_prefix(client: Client, bucket: str, prefix: str) -> bool:
    page = next(client.list_pages(bucket, prefix, limit=1), None)
    return page is not None and bool(page.objects or page.prefixes)


def read_exactly(descriptor: int, start: int, count: int) -> bytes:
    """Bytes of an open file; fewer than there were a moment ago are an error, not a shorter object.

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
