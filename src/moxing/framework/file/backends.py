"""Which backend serves a url. Local paths have none: for them the functions of `mox.file` go straight to the system."""

from __future__ import annotations

import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from moxing.framework.file.entries import FileStatistics, RemoteEntry
from moxing.framework.file.errors import UnsupportedSchemeError
from moxing.framework.file.paths import Url, get_scheme

if TYPE_CHECKING:
    from moxing.framework.file.remote_writing import LocalCopy

_STORES = ("s3", "obs")
_BUCKET = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")
_SLASHES = re.compile("//+")


class Backend(ABC):
    """What a place for files has to do. Paths are what follows `scheme://`; a directory may end in a slash.

    A method that looks for something returns None where there is nothing; the functions of `mox.file` make an exception
    of that, which names their argument.
    """

    #: Whether a directory has to be made before something is written into it.
    has_real_directories: bool

    @abstractmethod
    def locate(self, path: str) -> tuple[object, str]:
        """The store and the path in it; both are the same if and only if the file is the same."""

    def can_copy_to(self, path: str, other: Backend, target: str) -> bool:
        """Whether `copy` brings a file to a path of the other backend."""
        return self.locate(path)[0] == other.locate(target)[0]

    @abstractmethod
    def stat(self, path: str) -> FileStatistics | None:
        """The file or directory."""

    @abstractmethod
    def is_directory(self, path: str) -> bool:
        """Whether it is a directory, whatever else it is."""

    @abstractmethod
    def entries(self, path: str) -> list[RemoteEntry] | None:
        """What is in a directory, without order."""

    @abstractmethod
    def tree(self, path: str) -> Iterator[RemoteEntry]:
        """All that is below a directory, in any order; nothing where there is none. Parts of a path may be empty."""

    @abstractmethod
    def read(self, path: str) -> bytes | bytearray | None:
        """The whole content of a file."""

    def read_version(self, path: str) -> tuple[bytes | bytearray, str] | None:
        """The whole content of a file and its version, which is empty where the backend knows none."""
        content = self.read(path)
        return None if content is None else (content, "")

    def read_range(self, path: str, start: int, end: int, version: str = "") -> bytes | bytearray | None:
        """The content from `start` up to before `end`; an error where the file has another version by now."""
        reader = self.open_reader(path)
        if reader is None:
            return None
        with io.BufferedReader(reader) as stream:
            stream.seek(start)
            return stream.read(end - start)

    def describe(self, path: str) -> RemoteEntry | None:
        """Size, time and version of a file; None where there is none."""
        found = self.stat(path)
        if found is None or found.is_directory:
            return None
        return RemoteEntry(path.rpartition("/")[2], False, found.length, found.mtime_nsec)

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """A file with this content, in place of what was there."""

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """A directory and those above it; it may be there already."""

    @abstractmethod
    def remove_file(self, path: str) -> None:
        """Removes a file."""

    @abstractmethod
    def remove_tree(self, path: str) -> None:
        """Removes a directory with all that is in it."""

    @abstractmethod
    def copy(self, source: str, target: str) -> bool:
        """Copies a file of this backend to another name of it; False where there is no source."""

    @abstractmethod
    def upload(self, descriptor: int, path: str, at_once: int = 4, check: Callable[[], object] | None = None) -> None:
        """Makes a file of what is in an open local one.

        Args:
          descriptor: The local one.
          path: The file.
          at_once: How many parts of a large file are under way at a time.
          check: Called before the upload and before every further part; what it raises ends the upload.
        """

    @abstractmethod
    def download(self, path: str, target: str, known: RemoteEntry | None = None, at_once: int = 4) -> bool:
        """Makes a local file of it, which appears when it is complete; False where there is no source.

        Args:
          path: The file.
          target: The local path.
          known: What a listing said about it.
          at_once: How many parts of a large file are under way at a time.
        """

    @abstractmethod
    def open_reader(self, path: str) -> io.RawIOBase | None:
        """An open file for reading, which can seek."""

    @abstractmethod
    def open_writer(self, path: str) -> LocalCopy:
        """An open file for writing, whose content appears when it is closed."""


class Place(NamedTuple):
    """A url that is not local: its backend, the path there, and the url, as it was given but for doubled slashes."""

    backend: Backend
    path: str
    url: str

    def is_inside(self, other: Place) -> bool:
        """Whether it is `other` or lies in it. `s3://` and `obs://` may lead to one and the same store."""
        (store, inner), (other_store, outer) = self.backend.locate(self.path), other.backend.locate(other.path)
        return store == other_store and f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")

    def child(self, relative: str) -> Place:
        """Something in this directory."""
        return Place(self.backend, _join(self.path, relative), _join(self.url, relative))


def _join(path: str, relative: str) -> str:
    return f"{path}{relative}" if path.endswith("/") else f"{path}/{relative}"


def find_place(url: Url, argument: str) -> Place | None:
    """The place of a url; None for a local path and for what is no path at all.

    Example:
      >>> find_place('/data/a', 'url') is None
      True
      >>> find_place('s3://bucket//a///b/', 'url').url
      's3://bucket/a/b/'
      >>> find_place('s3://', 'url')
      Traceback (most recent call last):
      ...
      ValueError: url='s3://': expected s3://bucket or s3://bucket/key.
    """
    # The cheap test first: nearly every call is for a plain path.
    if type(url) is str:
        if "://" not in url:
            return None
        text = url
    elif isinstance(url, str | bytes | os.PathLike):
        text = os.fsdecode(url)
    else:
        return None
    scheme = get_scheme(text)
    if scheme is None or scheme == "file":
        return None
    path = text[len(scheme) + 3 :]
    if "\0" in text:
        raise ValueError(f"{argument}={text!r}: a path cannot contain a null character.")
    if scheme in _STORES:
        if not _BUCKET.match(path.partition("/")[0]):
            raise ValueError(f"{argument}={text!r}: expected {scheme}://bucket or {scheme}://bucket/key.")
        if "//" in path:
            # As in a path: scripts join a directory that ends in a slash and a name that begins with one.
            path = _SLASHES.sub("/", path)
            text = f"{scheme}://{path}"
        return Place(_store(scheme), path, text)
    from moxing.framework.file.fsspec_backend import find_backend

    try:
        return Place(find_backend(scheme), path, text)
    except UnsupportedSchemeError as error:
        raise UnsupportedSchemeError(f"{argument}={text!r}: {error}") from None


def _store(scheme: str) -> Backend:
    # Its module needs urllib3, which local paths do not.
    from moxing.framework.file.object_store import ObjectStore

    return ObjectStore(scheme)
