"""Files on their way into a directory of a store."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from moxing.framework import file
from moxing.framework.file.backends import Place, find_place

_FILES_AT_ONCE = 4
_PARTS_AT_ONCE = 4

#: Tells one content of a file from another: its number on the disk, its size, the time of its last change.
Version = tuple[int, int, int]


class UploadError(OSError):
    """Files of a run are not on the store."""


class Uploader:
    """Uploads and removes files; paths are relative to the directory on the store.

    Args:
      place: the directory on the store.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._given_up = threading.Event()

    @property
    def url(self) -> str:
        """The directory on the store."""
        return self._place.url

    @property
    def has_given_up(self) -> bool:
        """True after `give_up`."""
        return self._given_up.is_set()

    def give_up(self) -> None:
        """Nothing more is sent; what is under way comes to its end."""
        self._given_up.set()

    def send(self, path: str, relative: str) -> None:
        """Uploads the local file `path`; it appears on the store when it is complete."""
        target = self._find(relative)

        def check() -> None:
            if self.has_given_up:
                raise UploadError(f"{target.url} is not uploaded any more.")

        with open(path, "rb") as stream:
            target.backend.upload(stream.fileno(), target.path, _PARTS_AT_ONCE, check)

    def copy(self, relative: str, other: str) -> None:
        """Makes a second file of one that is on the store."""
        file.copy(self._find(relative).url, self._find(other).url)

    def write(self, relative: str, text: str) -> None:
        """Writes a small file, in one request."""
        target = self._find(relative)
        if self.has_given_up:
            raise UploadError(f"{target.url} is not written any more.")
        target.backend.write(target.path, text.encode())

    def remove(self, relative: str) -> None:
        """Removes a file, if it is there."""
        target = self._find(relative)
        with contextlib.suppress(FileNotFoundError):
            target.backend.remove_file(target.path)

    def for_each(self, names: Iterable[str], act: Callable[[str], object]) -> None:
        """Calls `act` with each name, some at a time; the first error is raised when all are done.

        Ctrl-C gives up: it is raised when the requests that are under way have ended.
        """
        with ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="mox-upload") as pool:
            futures = [pool.submit(act, name) for name in names]
            try:
                for future in futures:
                    future.result()
            except KeyboardInterrupt:
                self.give_up()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _find(self, relative: str) -> Place:
        # Looked up every time: keys may be replaced while a training runs.
        url = self._place.child(relative.replace(os.sep, "/")).url
        return find_place(url, "log_dir") or self._place


def version_of(path: str) -> Version | None:
    """The version of a local file; None if it is not there.

    Example:
      >>> version_of('/no/such/file') is None
      True
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def is_away(error: Exception) -> bool:
    """Whether the store gave no answer at all: every other file would take as long to fail.

    Example:
      >>> is_away(OSError('disk full'))
      False
    """
    return getattr(getattr(error, "resp", None), "status", None) == 0
