"""What is in a directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moxing.framework.file.backends import find_place
from moxing.framework.file.errors import not_a_directory, not_exists
from moxing.framework.file.paths import Url, local_path


@dataclass(frozen=True)
class TreeEntry:
    """Something in a directory tree. `is_loop` marks a link to a directory above it, which nothing descends into.

    Example:
      >>> TreeEntry('train/a.jpg', is_directory=False).relative
      'train/a.jpg'
    """

    relative: str
    is_directory: bool
    is_loop: bool = False


def iterate_tree(root: str) -> Iterator[TreeEntry]:
    """All that is in a local directory, directories before what they contain, in the order of the names.

    Links to directories are followed, as data sets are often put together from links.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.makedirs(folder + '/a/b')
      ...     [entry.relative for entry in iterate_tree(folder)]
      ['a', 'a/b']
    """
    # A stack and no recursion: a tree may be deeper than Python's recursion limit.
    stack = list(_read_directory(root, "", frozenset({_identity(root)})))
    while stack:
        entry, above = stack.pop()
        yield entry
        if entry.is_directory and not entry.is_loop:
            path = os.path.join(root, entry.relative)
            stack.extend(_read_directory(root, entry.relative, above | {_identity(path)}))


def _read_directory(
    root: str, relative: str, above: frozenset[tuple[int, int]]
) -> Iterator[tuple[TreeEntry, frozenset[tuple[int, int]]]]:
    with os.scandir(os.path.join(root, relative)) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name, reverse=True)
    for entry in ordered:
        is_directory = entry.is_dir()
        is_loop = is_directory and entry.is_symlink() and _identity(entry.path) in above
        yield TreeEntry(os.path.join(relative, entry.name), is_directory, is_loop), above


def _identity(path: str) -> tuple[int, int]:
    result = os.stat(path)
    return result.st_dev, result.st_ino


def list_directory(
    url: Url,
    recursive: bool = False,
    remove_sep: bool = True,
    skip_file: bool = False,
    skip_dir: bool = False,
    *,
    recurisive: bool | None = None,
) -> list[str]:
    """The names in a directory, sorted; with `recursive` the paths of everything below it.

    Args:
      url: A path or url.
      recursive: List what the directories in it contain, too. The paths are relative to `url`.
      remove_sep: False to mark directories with a slash at the end.
      skip_file: Leave out the files.
      skip_dir: Leave out the directories (but not, with `recursive`, what they contain).
      recurisive: The same as `recursive`; the documentation of MoXing spelt it so.

    Raises:
      MoxFileNotExistsException: There is no such directory.
      NotADirectoryError: `url` is a file.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.make_dirs(folder + '/train')
      ...     mox.file.write(folder + '/train/a.txt', 'a')
      ...     mox.file.list_directory(folder)
      ...     mox.file.list_directory(folder, recursive=True, skip_dir=True)
      ['train']
      ['train/a.txt']
    """
    entries: Iterator[Any]
    if place := find_place(url, "url"):
        from moxing.framework.file.remote_listing import has_path, read_entries, read_tree

        entries = filter(has_path, (read_tree if recursive or recurisive else read_entries)(place, "url"))
    elif recursive or recurisive:
        entries = iterate_tree(_directory(url))
    else:
        path = _directory(url)
        with os.scandir(path) as found:
            entries = iter(sorted((TreeEntry(e.name, e.is_dir()) for e in found), key=lambda e: e.relative))
    return [
        entry.relative + ("/" if entry.is_directory and not remove_sep else "")
        for entry in entries
        if not (skip_dir if entry.is_directory else skip_file)
    ]


def get_size(url: Url, recursive: bool = False, *, recurisive: bool | None = None) -> int:
    """The size of a file in bytes. A directory has 0, or with `recursive` the sum of the files below it.

    Raises:
      MoxFileNotExistsException: There is nothing at `url`.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', 'hello')
      ...     mox.file.get_size(folder), mox.file.get_size(folder, recursive=True)
      (0, 5)
    """
    if place := find_place(url, "url"):
        found = place.backend.stat(place.path)
        if found is None:
            raise not_exists("url", place.url)
        if not found.is_directory or not (recursive or recurisive):
            return found.length
        return sum(entry.length for entry in place.backend.tree(place.path) if not entry.is_directory)
    path = local_path(url, "url")
    if not os.path.exists(path):
        raise not_exists("url", path)
    if not os.path.isdir(path):
        return os.path.getsize(path)
    if not (recursive or recurisive):
        return 0
    files = (entry.relative for entry in iterate_tree(path) if not entry.is_directory)
    return sum(_size_or_zero(os.path.join(path, name)) for name in files)


def _size_or_zero(path: str) -> int:
    # A link to nothing is in the tree, but has no content.
    return os.path.getsize(path) if os.path.exists(path) else 0


def glob(url: Url, *, recursive: bool = False) -> list[str]:
    """The paths that match a pattern, sorted. They begin as the pattern does: absolute if it is absolute.

    Args:
      url: A pattern with `*`, `?` and `[...]`, a path or url. The matches of a `file://` url are local paths.
      recursive: Let `**` match any number of directories.

    Example:
      >>> import moxing as mox, os, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.jpg', '')
      ...     mox.file.write(folder + '/b.txt', '')
      ...     [os.path.basename(path) for path in mox.file.glob(folder + '/*.jpg')]
      ['a.jpg']
    """
    if place := find_place(url, "url"):
        from moxing.framework.file.remote_listing import glob_place

        return glob_place(place, recursive)
    import glob as glob_module

    return sorted(glob_module.glob(local_path(url, "url"), recursive=recursive))


def scan_dir(url: Url) -> Any:
    """An iterator over the entries of a directory, each with `name`, `path`, `is_dir()`, `is_file()`, `stat()`.

    It is `os.scandir`, or the same for a url: a context manager, too, which closes it before its end.

    Raises:
      MoxFileNotExistsException: There is no such directory.
      NotADirectoryError: `url` is a file.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', '')
      ...     [(entry.name, entry.is_dir()) for entry in mox.file.scan_dir(folder)]
      [('a.txt', False)]
    """
    if place := find_place(url, "url"):
        from moxing.framework.file.remote_listing import Scan

        return Scan(place)
    return os.scandir(_directory(url))


def walk(
    url: Url,
    topdown: bool = True,
    onerror: Callable[[OSError], object] | None = None,
    followlinks: bool = False,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Goes through a directory tree as `os.walk` does: directory, names of its directories, names of its files.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', '')
      ...     [(dirs, files) for _, dirs, files in mox.file.walk(folder)]
      [([], ['a.txt'])]
    """
    if place := find_place(url, "url"):
        from moxing.framework.file.remote_listing import walk_place

        return walk_place(place, topdown, onerror)
    return os.walk(local_path(url, "url"), topdown, onerror, followlinks)


def _directory(url: Url) -> str:
    path = local_path(url, "url")
    if not os.path.exists(path):
        raise not_exists("url", path, "no such directory")
    if not os.path.isdir(path):
        raise not_a_directory("url", path, "give the path of a directory")
    return path
