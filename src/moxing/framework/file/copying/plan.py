"""What a copy will do: files to copy and directories to create, checked as a whole before the first byte is copied."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from moxing.framework.file.copying.target_tree import TargetTree
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.errors import MoxFileNameDuplicateException, not_exists
from moxing.framework.file.urls import Location, RemotePath, is_inside, join, url_of

#: Parts of a key that cannot be part of a local path, or lead out of it.
_BAD_PARTS = ("", ".", "..")


class CopyTask(NamedTuple):
    """A file to copy. `length` is its size if known, `concurrency` how many of its parts may be in flight at a time.

    Example:
      >>> CopyTask('/data/a', '/data/b', 3).length
      3
    """

    source: Location
    target: Location
    length: int | None = None
    concurrency: int = 4


class CopyPlan:
    """Files to copy, and directories to create before.

    Example:
      >>> plan = CopyPlan()
      >>> plan.add_file('/data/a', '/copy/a', 3)
      >>> plan.length, plan.tasks[0].target
      (3, '/copy/a')
    """

    def __init__(self) -> None:
        self.tasks: list[CopyTask] = []
        self._preparations: list[Callable[[], None]] = []

    @property
    def length(self) -> int:
        """The number of bytes to copy, as far as it is known."""
        return sum(task.length or 0 for task in self.tasks)

    @property
    def is_local(self) -> bool:
        """Whether source and target are on this machine."""
        return all(isinstance(task.source, str) and isinstance(task.target, str) for task in self.tasks[:1])

    def add_file(self, source: Location, target: Location, length: int | None = None) -> None:
        """Adds one file and the path of its copy."""
        if isinstance(target, str):
            # A link at the target stays; the file it points to is replaced.
            directory = os.path.dirname(os.path.realpath(target))
            self._preparations.append(lambda: os.makedirs(directory, exist_ok=True))
        self.tasks.append(CopyTask(source, target, length))

    def add_tree(
        self,
        source: Location,
        target: Location,
        entries: Iterable[FileEntry],
        below: str = "",
        is_whole: bool = True,
    ) -> None:
        """Adds entries of the directory `source`, to be copied into the directory `target`.

        Args:
          source: The directory to copy from.
          target: The directory to copy into. Nothing is written outside of it.
          entries: Entries of `source`. The entry without a name is `source` itself.
          below: A subdirectory of `target` to copy into.
          is_whole: Whether all of `source` is copied. Then nothing may be written into it.

        Raises:
          ValueError: A name or a link leads out of `target` or into `source`.
          MoxFileNameDuplicateException: A file has the name of a directory, or the other way round.
        """
        if is_whole:
            check_not_inside(source, target)
        named = [(entry, "/".join(filter(None, (below, entry.relative)))) for entry in entries]
        if isinstance(source, RemotePath):
            for entry, relative in named:
                check = _check_local_name if isinstance(target, str) else _check_key
                check(source.url, relative if isinstance(target, str) else entry.relative)
        if isinstance(target, str):
            self._add_local_target(source, target, named, is_whole)
        else:
            self._add_remote_target(source, target, named)

    def _add_local_target(
        self, source: Location, target: str, named: list[tuple[FileEntry, str]], is_whole: bool
    ) -> None:
        tree = TargetTree(target, source if isinstance(source, str) and is_whole else None)
        for entry, relative in named:
            if entry.is_directory:
                tree.add_directory(relative)
            else:
                self._add_entry(source, entry, tree.add_file(relative))
        self._preparations.append(tree.make_directories)

    def _add_remote_target(self, source: Location, target: RemotePath, named: list[tuple[FileEntry, str]]) -> None:
        backend = target.backend
        existing = backend.stat(target.path.rstrip("/"))
        if existing is not None and not existing.is_directory and not backend.is_directory(target.path):
            raise MoxFileNameDuplicateException(errno.EEXIST, "dst_url: a file has the name of a directory", target.url)
        directories = [relative for entry, relative in named if entry.is_directory]
        if not backend.has_real_directories:
            # A directory that contains something exists without a marker.
            parents = {os.path.dirname(relative) for _, relative in named}
            directories = [relative for relative in directories if relative not in parents]
        if backend.has_real_directories or (existing is None and not named):
            self._preparations.append(lambda: backend.make_directory(target.path))
        for relative in directories:
            path = target.child(relative).path
            self._preparations.append(lambda path=path: backend.make_directory(path))  # type: ignore[misc]
        for entry, relative in named:
            if not entry.is_directory:
                self._add_entry(source, entry, target.child(relative))

    def _add_entry(self, source: Location, entry: FileEntry, target: Location) -> None:
        if isinstance(source, RemotePath):
            self.tasks.append(CopyTask(source.child(entry.relative), target, entry.length))
            return
        path = join(source, entry.relative)
        if not os.path.exists(path):
            raise not_exists("src_url", path, "a link to nothing")
        self.tasks.append(CopyTask(path, target, entry.length))

    def make_directories(self) -> None:
        """Creates the directories that the copies need."""
        for prepare in self._preparations:
            prepare()


def check_not_inside(source: Location, target: Location) -> None:
    """Raises ValueError if the directory `target` is `source` or lies in it.

    Example:
      >>> check_not_inside('/data', '/data/copy')
      Traceback (most recent call last):
      ...
      ValueError: dst_url='/data/copy': expected a directory outside src_url='/data', a directory cannot be copied ...
    """
    if lies_in(target, source):
        raise ValueError(
            f"dst_url={url_of(target)!r}: expected a directory outside src_url={url_of(source)!r}, "
            "a directory cannot be copied into itself."
        )


def lies_in(inner: Location, outer: Location) -> bool:
    """Returns whether one location is another one or lies in it.

    Example:
      >>> lies_in('/data/a', '/data'), lies_in('/data', '/data/a')
      (True, False)
    """
    if isinstance(inner, str) and isinstance(outer, str):
        return is_inside(os.path.realpath(inner), os.path.realpath(outer))
    return isinstance(inner, RemotePath) and isinstance(outer, RemotePath) and inner.is_inside(outer)


def _check_local_name(url: str, relative: str) -> None:
    """Raises ValueError if a key below `url` cannot be a local path."""
    if "\0" in relative or any(part in _BAD_PARTS for part in relative.split("/")):
        raise ValueError(
            f"src_url={url!r}: the key {relative!r} in it cannot be a path below dst_url; nothing was copied. "
            "Name the files to copy in file_list."
        )


def _check_key(url: str, relative: str) -> None:
    """Raises ValueError if a key below `url` cannot be written as a URL, in which several slashes are one."""
    if relative and "" in relative.split("/"):
        raise ValueError(
            f"src_url={url!r}: the key {relative!r} in it has an empty part, which no url can name; nothing was "
            "copied. Name the files to copy in file_list."
        )
