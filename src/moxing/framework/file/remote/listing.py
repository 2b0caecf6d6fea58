"""Remote directories: entries like those of `os.scandir`, walks, patterns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from types import TracebackType

from moxing.framework.file.entries import FileEntry, FileStatistics
from moxing.framework.file.errors import not_a_directory, not_exists
from moxing.framework.file.urls import RemotePath

_MAGIC = re.compile(r"[*?[]")


def read_entries(remote: RemotePath, argument: str) -> list[FileEntry]:
    """Returns the entries of a directory, sorted by name; raises an error if it does not exist."""
    entries = remote.backend.entries(remote.path)
    if entries is None:
        if remote.backend.stat(remote.path) is not None:
            raise not_a_directory(argument, remote.url, "give the path of a directory")
        raise not_exists(argument, remote.url, "no such directory")
    return sorted(entries, key=lambda entry: (entry.relative, entry.is_directory))


def has_path(entry: FileEntry) -> bool:
    """Returns whether an entry has a URL: that of `a//b` would be `a/b`, which may be another object.

    Example:
      >>> has_path(FileEntry('a/b', False)), has_path(FileEntry('a//b', False)), has_path(FileEntry('/b', False))
      (True, False, False)
    """
    return "" not in entry.relative.split("/")


def read_tree(remote: RemotePath, argument: str) -> list[FileEntry]:
    """Returns everything below a directory, sorted by name, directories before their content."""
    entries = sorted(remote.backend.tree(remote.path), key=lambda entry: entry.relative.split("/"))
    if not entries:
        read_entries(remote, argument)
    return entries


class ScannedEntry:
    """An entry of a remote directory, with the methods of `os.DirEntry`."""

    def __init__(self, remote: RemotePath, entry: FileEntry) -> None:
        self.name = entry.relative
        self.path = remote.url
        self._entry = entry

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Returns whether it is a directory."""
        return self._entry.is_directory

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Returns whether it is a file."""
        return not self._entry.is_directory

    def is_symlink(self) -> bool:
        """Returns False: stores have no links."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> FileStatistics:
        """Returns what the listing said, without a further request."""
        return self._entry.statistics()

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<ScannedEntry {self.name!r}>"


class Scan:
    """An iterator over entries and a context manager, as `os.scandir`."""

    def __init__(self, remote: RemotePath) -> None:
        self._entries = iter([ScannedEntry(remote.child(e.relative), e) for e in read_entries(remote, "url")])

    def __iter__(self) -> Iterator[ScannedEntry]:
        return self

    def __next__(self) -> ScannedEntry:
        return next(self._entries)

    def close(self) -> None:
        """Ends the iteration."""
        self._entries = iter(())

    def __enter__(self) -> Scan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def walk_remote(
    remote: RemotePath, topdown: bool, onerror: Callable[[OSError], object] | None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walks a tree as `os.walk` does. From the top down, a caller may remove directories from the list."""
    try:
        entries = read_entries(remote, "url")
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    directories = [entry.relative for entry in entries if entry.is_directory]
    files = [entry.relative for entry in entries if not entry.is_directory]
    if topdown:
        yield remote.url, directories, files
    for name in directories:
        yield from walk_remote(remote.child(name), topdown, onerror)
    if not topdown:
        yield remote.url, directories, files


def glob_remote(remote: RemotePath, recursive: bool) -> list[str]:
    """Returns the URLs that match a pattern, sorted. As in `glob.glob`, `*` matches no name that starts with a dot."""
    scheme, _, rest = remote.url.partition("://")
    bucket, _, pattern = rest.partition("/")
    root = RemotePath(remote.backend, bucket, f"{scheme}://{bucket}")
    if _MAGIC.search(bucket):
        raise ValueError(f"url={remote.url!r}: expected a pattern without *, ? and [ in the first part.")
    if not pattern:
        return [remote.url] if remote.backend.stat(remote.path) is not None else []
    return sorted(set(_match(root, pattern.split("/"), recursive)))


def _match(remote: RemotePath, parts: list[str], recursive: bool) -> Iterator[str]:
    position = next((n for n, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    if position:
        remote = remote.child("/".join(parts[:position]))
    rest = parts[position + 1 :]
    if position == len(parts):
        if remote.backend.stat(remote.path) is not None:
            yield remote.url
        return
    part = parts[position]
    if recursive and part == "**":
        yield from _match_any_depth(remote, rest)
        return
    matches = re.compile(fnmatch.translate(part)).match
    for entry in remote.backend.entries(remote.path) or ():
        name = entry.relative
        if not matches(name) or (name.startswith(".") and not part.startswith(".")):
            continue
        if not rest:
            yield remote.child(name).url
        elif entry.is_directory:
            yield from _match(remote.child(name), rest, recursive)


def _match_any_depth(remote: RemotePath, rest: list[str]) -> Iterator[str]:
    """Matches `**`: the directory itself and everything below it."""
    tree = [entry for entry in remote.backend.tree(remote.path) if has_path(entry) and not _is_hidden(entry.relative)]
    if not rest:
        if tree or remote.backend.is_directory(remote.path):
            yield remote.url if remote.url.endswith("/") else f"{remote.url}/"
        yield from (remote.child(entry.relative).url for entry in tree)
        return
    yield from _match(remote, rest, True)
    for entry in tree:
        if entry.is_directory:
            yield from _match(remote.child(entry.relative), rest, True)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))
