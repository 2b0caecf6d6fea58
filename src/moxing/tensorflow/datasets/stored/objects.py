"""Lists and reads the objects of a dataset on an object store."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple

from moxing.framework.file.entries import FileEntry
from moxing.framework.file.errors import MoxFileReadException
from moxing.framework.file.remote.listing import has_path
from moxing.framework.file.urls import RemotePath, Url, find_remote
from moxing.framework.file.waiting import retry_while_unavailable

_MISSING = "cannot be read: there is no such object"
CHANGED = "cannot be read: the object has changed meanwhile"


class StoredObject(NamedTuple):
    """An entry of a listing.

    Attributes:
      url: the url of the object.
      length: its size in bytes.
      version: its ETag, or the time of its last change if the store has no ETags.

    Example:
      >>> StoredObject('s3://bucket/a.jpg', 3, 'abc').url
      's3://bucket/a.jpg'
    """

    url: str
    length: int
    version: str


class UnusableObjectError(Exception):
    """An object is missing or broken; the message says which. The store itself is reachable."""


def is_stored(url: Url) -> bool:
    """Returns whether a url is on an object store and not on the local disk.

    Example:
      >>> is_stored('s3://bucket/data'), is_stored('/data'), is_stored('file:///data')
      (True, False, False)
    """
    return find_remote(url, "url") is not None


def require_remote(url: Url, argument: str) -> RemotePath:
    """Returns the backend and path of a url on an object store, without a trailing slash."""
    remote = find_remote(url, argument)
    if remote is None:
        raise ValueError(f"{argument}={url!r}: expected a url of an object store.")
    return RemotePath(remote.backend, remote.path.rstrip("/"), remote.url.rstrip("/"))


def list_tree(remote: RemotePath, argument: str) -> Iterator[FileEntry]:
    """Yields all entries below a directory that have a url, by one recursive listing, in the order of the store.

    Raises:
      ValueError: there is no such directory.
    """
    entry = None
    for entry in remote.backend.tree(remote.path):
        if has_path(entry):
            yield entry
    if entry is None and not remote.backend.is_directory(remote.path):
        state = "does not exist" if remote.backend.stat(remote.path) is None else "is a file"
        raise ValueError(f"{argument}={remote.url!r} {state}: expected a directory.")


def stored_object(remote: RemotePath, entry: FileEntry) -> StoredObject:
    """Returns the object of an entry in the listing of `remote`."""
    return StoredObject(remote.child(entry.relative).url, entry.length, version_of(entry))


def version_of(entry: FileEntry) -> str:
    """Returns the version of an object.

    Example:
      >>> version_of(FileEntry('a', False, 3, 17, '"abc"')), version_of(FileEntry('a', False, 3, 17))
      ('abc', '17')
    """
    return entry.version.strip('"') or str(entry.mtime_nsec)


def version_number(item: StoredObject) -> int:
    """Returns the version as a number, in remote of the modification time of a local file.

    Example:
      >>> version_number(StoredObject('s3://b/a', 3, 'abc')) == version_number(StoredObject('s3://c/d', 4, 'abc'))
      True
    """
    return int.from_bytes(blake2b(item.version.encode(), digest_size=7).digest(), "little")


def describe_object(url: str) -> StoredObject | None:
    """Returns the current state of an object; None if it is missing."""
    remote = require_remote(url, "url")
    entry = remote.backend.describe(remote.path)
    return entry and StoredObject(url, entry.length, version_of(entry))


def read_object(item: StoredObject) -> tuple[bytes, bool]:
    """Returns the content of an object, and whether it is still the version that was listed.

    Raises:
      UnusableObjectError: the object is missing or broken.
      OSError: the store is unreachable or denies access.
    """
    remote = require_remote(item.url, "url")
    with raise_object_faults():
        found = retry_while_unavailable(lambda: remote.backend.read_version(remote.path))
    if found is None:
        raise UnusableObjectError(_MISSING)
    content, version = found
    return bytes(content), len(content) == item.length and version.strip('"') in ("", item.version)


def read_range(item: StoredObject, start: int, end: int) -> bytes:
    """Returns a range of bytes of an object.

    Raises:
      UnusableObjectError: the object is missing, broken, or no longer the version that was listed.
      OSError: the store is unreachable or denies access.
    """
    remote = require_remote(item.url, "url")
    # An ETag is quoted in a request; a modification time is not an ETag.
    version = "" if item.version.isdigit() else f'"{item.version}"'
    with raise_object_faults():
        content = retry_while_unavailable(lambda: remote.backend.read_range(remote.path, start, end, version))
    if content is None:
        raise UnusableObjectError(_MISSING)
    return bytes(content)


def fault_of_object(error: OSError) -> str | None:
    """Returns what is wrong with an object; None if the store is unreachable or denies access.

    Example:
      >>> fault_of_object(FileNotFoundError(2, 'gone')), fault_of_object(TimeoutError())
      ('cannot be read: there is no such object', None)
    """
    if isinstance(error, FileNotFoundError):
        return _MISSING
    if isinstance(error, MoxFileReadException):
        if error.errno == errno.ESTALE:
            return CHANGED
        if getattr(error.resp, "code", "") == "Damaged":
            return f"cannot be read: {error.resp.message}"
    return None


@contextmanager
def raise_object_faults() -> Iterator[None]:
    """Raises `UnusableObjectError` for an object that is missing or broken."""
    try:
        yield
    except OSError as error:
        fault = fault_of_object(error)
        if fault is None:
            raise
        raise UnusableObjectError(fault) from error
