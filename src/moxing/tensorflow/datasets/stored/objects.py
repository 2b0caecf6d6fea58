"""Objects of a data set on a store: listing them once, and reading them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple

from moxing.framework.file.backends import Place, find_place
from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import MoxFileReadException
from moxing.framework.file.paths import Url
from moxing.framework.file.remote_listing import has_path
from moxing.tensorflow.datasets.stored.patience import patiently

_MISSING = "cannot be read: there is no such object"
CHANGED = "cannot be read: the object was changed meanwhile"


class StoredObject(NamedTuple):
    """An object as a listing has it.

    Attributes:
      url: where it is.
      length: its size in bytes.
      version: its ETag; where the store has none, the time of its last change.

    Example:
      >>> StoredObject('s3://bucket/a.jpg', 3, 'abc').url
      's3://bucket/a.jpg'
    """

    url: str
    length: int
    version: str


class UnusableObjectError(Exception):
    """An object is missing or broken; the message says which. The store itself is there."""


def is_stored(url: Url) -> bool:
    """Whether a url leads to a store and not to the local disk.

    Example:
      >>> is_stored('s3://bucket/data'), is_stored('/data'), is_stored('file:///data')
      (True, False, False)
    """
    return find_place(url, "url") is not None


def require_place(url: Url, argument: str) -> Place:
    """The place of a url that is known to lead to a store, without a slash at the end."""
    place = find_place(url, argument)
    if place is None:
        raise ValueError(f"{argument}={url!r}: expected a url of an object store.")
    return Place(place.backend, place.path.rstrip("/"), place.url.rstrip("/"))


def list_tree(place: Place, argument: str) -> Iterator[RemoteEntry]:
    """All that is below a directory of a store and has a url, with one recursive listing, in the order of the store.

    Raises:
      ValueError: There is no such directory.
    """
    entry = None
    for entry in place.backend.tree(place.path):
        if has_path(entry):
            yield entry
    if entry is None and not place.backend.is_directory(place.path):
        state = "does not exist" if place.backend.stat(place.path) is None else "is a file"
        raise ValueError(f"{argument}={place.url!r} {state}: expected a directory.")


def stored_object(place: Place, entry: RemoteEntry) -> StoredObject:
    """The object of an entry in the listing of `place`."""
    return StoredObject(place.child(entry.relative).url, entry.length, version_of(entry))


def version_of(entry: RemoteEntry) -> str:
    """What tells one version of an object from the next.

    Example:
      >>> version_of(RemoteEntry('a', False, 3, 17, '"abc"')), version_of(RemoteEntry('a', False, 3, 17))
      ('abc', '17')
    """
    return entry.version.strip('"') or str(entry.mtime_nsec)


def version_number(item: StoredObject) -> int:
    """The version as a number, to stand where a local file has the time of its last change.

    Example:
      >>> version_number(StoredObject('s3://b/a', 3, 'abc')) == version_number(StoredObject('s3://c/d', 4, 'abc'))
      True
    """
    return int.from_bytes(blake2b(item.version.encode(), digest_size=7).digest(), "little")


def describe_object(url: str) -> StoredObject | None:
    """What the store says of an object now; None if it is missing."""
    place = require_place(url, "url")
    entry = place.backend.describe(place.path)
    return entry and StoredObject(url, entry.length, version_of(entry))


def read_object(item: StoredObject) -> tuple[bytes, bool]:
    """The content of an object, and whether it is the one that was listed.

    Raises:
      UnusableObjectError: It is missing or broken.
      OSError: The store is away or refuses.
    """
    place = require_place(item.url, "url")
    with faults_of_objects():
        found = patiently(lambda: place.backend.read_version(place.path))
    if found is None:
        raise UnusableObjectError(_MISSING)
    content, version = found
    return bytes(content), len(content) == item.length and version.strip('"') in ("", item.version)


def read_range(item: StoredObject, start: int, end: int) -> bytes:
    """A part of an object.

    Raises:
      UnusableObjectError: It is missing, broken, or no longer the one that was listed.
      OSError: The store is away or refuses.
    """
    place = require_place(item.url, "url")
    # The version of a store is its ETag, which a request names in quotes; a time is no such version.
    version = "" if item.version.isdigit() else f'"{item.version}"'
    with faults_of_objects():
        content = patiently(lambda: place.backend.read_range(place.path, start, end, version))
    if content is None:
        raise UnusableObjectError(_MISSING)
    return bytes(content)


def fault_of_object(error: OSError) -> str | None:
    """What is wrong with an object; None where the fault is the store's: it is away, or refuses.

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
def faults_of_objects() -> Iterator[None]:
    """Inside, the exception for an object that is missing or broken is an `UnusableObjectError`."""
    try:
        yield
    except OSError as error:
        fault = fault_of_object(error)
        if fault is None:
            raise
        raise UnusableObjectError(fault) from error
