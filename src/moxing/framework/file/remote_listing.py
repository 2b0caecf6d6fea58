"""Directories of backends: entries as `os.scandir` gives them, walks, patterns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from types import TracebackType

from moxing.framework.file.backends import Place
from moxing.framework.file.entries import FileStatistics, RemoteEntry
from moxing.framework.file.errors import not_a_directory, not_exists

_MAGIC = re.compile(r"[*?[]")


def read_entries(place: Place, argument: str) -> list[RemoteEntry]:
    """What is in a directory, in the order of the names; an exception where there is none."""
    entries = place.backend.entries(place.path)
    if entries is None:
        if place.backend.stat(place.path) is not None:
            raise not_a_directory(argument, place.url, "give the path of a directory")
        raise not_exists(argument, place.url, "no such directory")
    return sorted(entries, key=lambda entry: (entry.relative, entry.is_directory))


def has_path(entry: RemoteEntry) -> bool:
    """Whether an entry of a tree can be a path: of `a//b`, a url makes `a/b`, which may be another object.

    Example:
      >>> has_path(RemoteEntry('a/b', False)), has_path(RemoteEntry('a//b', False)), has_path(RemoteEntry('/b', False))
      (True, False, False)
    """
    return "" not in entry.relative.split("/")


def read_tree(place: Place, argument: str) -> list[RemoteEntry]:
    """All that is below a directory, directories before what they contain, in the order of the names."""
    entries = sorted(place.backend.tree(place.path), key=lambda entry: entry.relative.split("/"))
    if not entries:
        read_entries(place, argument)
    return entries


class ScannedEntry:
    """An entry of a directory, with the methods of those of `os.scandir`."""

    def __init__(self, place: Place, entry: RemoteEntry) -> None:
        self.name = entry.relative
        self.path = place.url
        self._entry = entry

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory."""
        return self._entry.is_directory

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return not self._entry.is_directory

    def is_symlink(self) -> bool:
        """No store has links."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> FileStatistics:
        """What the listing says about it; no further request is made."""
        return self._entry.statistics()

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<ScannedEntry {self.name!r}>"


class Scan:
    """An iterator over entries that is a context manager, too, as `os.scandir` is."""

    def __init__(self, place: Place) -> None:
        self._entries = iter([ScannedEntry(place.child(e.relative), e) for e in read_entries(place, "url")])

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


def walk_place(
    place: Place, topdown: bool, onerror: Callable[[OSError], object] | None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Goes through a tree as `os.walk` does; a caller that goes from the top may take directories out of the list."""
    try:
        entries = read_entries(place, "url")
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    directories = [entry.relative for entry in entries if entry.is_directory]
    files = [entry.relative for entry in entries if not entry.is_directory]
    if topdown:
        yield place.url, directories, files
    for name in directories:
        yield from walk_place(place.child(name), topdown, onerror)
    if not topdown:
        yield place.url, directories, files


def glob_place(place: Place, recursive: bool) -> list[str]:
    """The urls that match a pattern, sorted; as with `glob.glob` names that begin with a dot have to be asked for."""
    scheme, _, rest = place.url.partition("://")
    bucket, _, pattern = rest.partition("/")
    root = Place(place.backend, bucket, f"{scheme}://{bucket}")
    if _MAGIC.search(bucket):
        raise ValueError(f"url={place.url!r}: expected a pattern without *, ? and [ in the first part.")
    if not pattern:
        return [place.url] if place.backend.stat(place.path) is not None else []
    return sorted(set(_match(root, pattern.split("/"), recursive)))


def _match(place: Place, parts: list[str], recursive: bool) -> Iterator[str]:
    position = next((n for n, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    if position:
        place = place.child("/".join(parts[:position]))
    rest = parts[position + 1 :]
    if position == len(parts):
        if place.backend.stat(place.path) is not None:
            yield place.url
        return
    part = parts[position]
    if recursive and part == "**":
        yield from _match_any_depth(place, rest)
        return
    matches = re.compile(fnmatch.translate(part)).match
    for entry in place.backend.entries(place.path) or ():
        name = entry.relative
        if not matches(name) or (name.startswith(".") and not part.startswith(".")):
            continue
        if not rest:
            yield place.child(name).url
        elif entry.is_directory:
            yield from _match(place.child(name), rest, recursive)


def _match_any_depth(place: Place, rest: list[str]) -> Iterator[str]:
    """`**`: the directory itself and all below it."""
    tree = [entry for entry in place.backend.tree(place.path) if has_path(entry) and not _is_hidden(entry.relative)]
    if not rest:
        if tree or place.backend.is_directory(place.path):
            yield place.url if place.url.endswith("/") else f"{place.url}/"
        yield from (place.child(entry.relative).url for entry in tree)
        return
    yield from _match(place, rest, True)
    for entry in tree:
        if entry.is_directory:
            yield from _match(place.child(entry.relative), rest, True)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))
