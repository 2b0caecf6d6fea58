"""Single uploads into a directory of a store."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable

from moxing.framework import file
from moxing.framework.file.urls import RemotePath, find_remote
from moxing.framework.util.thread_pool import ThreadPool

_PARALLEL_FILES = 4
_PARALLEL_PARTS = 4

#: Identifies a content of a local file: inode, size, time of the last change in nanoseconds.
Version = tuple[int, int, int]


class UploadError(OSError):
    """Files of a run are not on the store."""


class Uploader:
    """Uploads and removes files; paths are relative to the directory on the store.

    Args:
      location: the directory on the store.
    """

    def __init__(self, location: RemotePath) -> None:
        self._location = location
        self._cancelled = threading.Event()

    @property
    def url(self) -> str:
        """The url of the directory on the store."""
        return self._location.url

    @property
    def is_cancelled(self) -> bool:
        """True after `cancel`."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Starts no more requests; those under way are completed."""
        self._cancelled.set()

    def send(self, path: str, relative: str) -> None:
        """Uploads the local file `path`; it appears on the store when it is complete."""
        target = self._find(relative)

        def check() -> None:
            if self.is_cancelled:
                raise UploadError(f"The upload of {target.url} was cancelled.")

        with open(path, "rb") as stream:
            target.backend.upload(stream.fileno(), target.path, _PARALLEL_PARTS, check)

    def copy(self, relative: str, other: str) -> None:
        """Copies a file that is on the store to another name there."""
        file.copy(self._find(relative).url, self._find(other).url)

    def write(self, relative: str, text: str) -> None:
        """Writes a small file, in one request."""
        target = self._find(relative)
        if self.is_cancelled:
            raise UploadError(f"The upload of {target.url} was cancelled.")
        target.backend.write(target.path, text.encode())

    def remove(self, relative: str) -> None:
        """Removes a file, if it exists."""
        target = self._find(relative)
        with contextlib.suppress(FileNotFoundError):
            target.backend.remove_file(target.path)

    def for_each(self, names: Iterable[str], action: Callable[[str], object]) -> None:
        """Calls `action` with each name, several in parallel; raises the first error when all are done.

        Ctrl-C cancels: KeyboardInterrupt is raised when the requests under way are completed.
        """
        with ThreadPool(_PARALLEL_FILES, thread_name_prefix="mox-upload") as pool:
            futures = [pool.submit(action, name) for name in names]
            try:
                for future in futures:
                    future.result()
            except KeyboardInterrupt:
                self.cancel()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _find(self, relative: str) -> RemotePath:
        # Looked up for every request: credentials may change while a training runs.
        url = self._location.child(relative.replace(os.sep, "/")).url
        return find_remote(url, "log_dir") or self._location


def version_of(path: str) -> Version | None:
    """The version of a local file; None if it does not exist.

    Example:
      >>> version_of('/no/such/file') is None
      True
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def is_unreachable(error: Exception) -> bool:
    """True when the store did not answer at all: any other file would fail as slowly.

    Example:
      >>> is_unreachable(OSError('disk full'))
      False
    """
    return getattr(getattr(error, "resp", None), "status", None) == 0
