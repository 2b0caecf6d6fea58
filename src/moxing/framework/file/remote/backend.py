"""The interface of a remote file system: what serves the URLs of a scheme. Local paths need no backend."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from moxing.framework.file.entries import FileEntry, FileStatistics

if TYPE_CHECKING:
    from moxing.framework.file.remote.local_copy import LocalCopy


class Backend(ABC):
    """A remote file system. A path is what follows `scheme://`; that of a directory may end in a slash.

    A method that looks for something returns None if it does not exist. The functions of `mox.file` turn that into an
    exception that names their argument.
    """

    #: Whether a directory must be created before a file is written into it.
    has_real_directories: bool

    @abstractmethod
    def locate(self, path: str) -> tuple[object, str]:
        """Returns the store and the path in it. Two files are the same if and only if both are equal."""

    def can_copy_to(self, path: str, other: Backend, target: str) -> bool:
        """Returns whether `copy` can copy a file to a path of the other backend."""
        return self.locate(path)[0] == other.locate(target)[0]

    @abstractmethod
    def stat(self, path: str) -> FileStatistics | None:
        """Returns size, modification time and kind of a file or directory."""

    @abstractmethod
    def is_directory(self, path: str) -> bool:
        """Returns whether there is a directory. An object store may have a file of the same name, too."""

    @abstractmethod
    def entries(self, path: str) -> list[FileEntry] | None:
        """Returns the entries of a directory, unordered."""

    @abstractmethod
    def tree(self, path: str) -> Iterator[FileEntry]:
        """Yields everything below a directory, unordered. Parts of a path may be empty, as in `a//b`."""

    @abstractmethod
    def read(self, path: str) -> bytes | bytearray | None:
        """Returns the content of a file."""

    def read_version(self, path: str) -> tuple[bytes | bytearray, str] | None:
        """Returns the content of a file and its version, which is empty if the backend has none."""
        content = self.read(path)
        return None if content is None else (content, "")

    def read_range(self, path: str, start: int, end: int, version: str = "") -> bytes | bytearray | None:
        """Returns the bytes from `start` up to `end`. If the file has another version by now, this is an error."""
        reader = self.open_reader(path)
        if reader is None:
            return None
        with io.BufferedReader(reader) as stream:
            stream.seek(start)
            return stream.read(end - start)

    def describe(self, path: str) -> FileEntry | None:
        """Returns size, modification time and version of a file."""
        found = self.stat(path)
        if found is None or found.is_directory:
            return None
        return FileEntry(path.rpartition("/")[2], False, found.length, found.mtime_nsec)

    def matches_version(self, version: str, local_path: str) -> bool:
        """Returns whether a local file has the content of this version."""
        return False

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Writes a file, replacing an existing one."""

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """Creates a directory and its parents. It may exist already."""

    @abstractmethod
    def remove_file(self, path: str) -> None:
        """Removes a file."""

    @abstractmethod
    def remove_tree(self, path: str) -> None:
        """Removes a directory and everything in it."""

    @abstractmethod
    def copy(self, source: str, target: str) -> bool:
        """Copies a file inside the backend; returns False if the source does not exist."""

    @abstractmethod
    def upload(
        self, descriptor: int, path: str, concurrency: int = 4, before_part: Callable[[], object] | None = None
    ) -> None:
        """Uploads an open local file.

        Args:
          descriptor: The file descriptor of the local file.
          path: The target.
          concurrency: How many parts of a large file are in flight at a time.
          before_part: Called before the upload and before each further part. An exception ends the upload.
        """

    @abstractmethod
    def download(self, path: str, target: str, length: int | None = None, concurrency: int = 4) -> bool:
        """Downloads a file; it appears when it is complete. Returns False if the source does not exist.

        Args:
          path: The source.
          target: The local path.
          length: The size of the file, if known from a listing.
          concurrency: How many parts of a large file are in flight at a time.
        """

    @abstractmethod
    def open_reader(self, path: str) -> io.RawIOBase | None:
        """Opens a file for reading. It can seek."""

    @abstractmethod
    def open_writer(self, path: str) -> LocalCopy:
        """Opens a file for writing. The content appears when it is closed."""
