"""Lists directories: list_directory, get_size, glob, scan_dir, walk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moxing.framework.file.errors import not_a_directory, not_exists
from moxing.framework.file.urls import Url, find_remote, local_path


@dataclass(frozen=True)
class TreeEntry:
    """An entry of a local directory tree. `is_loop` marks a link to a directory above it, which is not followed.

    Example:
      >>> TreeEntry('train/a.jpg', is_directory=False).relative
      'train/a.jpg'
    """

    relative: str
    is_directory: bool
    is_loop: bool = False


def iterate_tree(root: str) -> Iterator[TreeEntry]:
    """Yields everything below a local directory, sorted by name, directories before their content.

    Links to directories are followed: datasets often consist of links.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.makedirs(folder + '/a/b')
      ...     [entry.relative for entry in iterate_tree(folder)]
      ['a', 'a/b']
    """
    # No recursion: a tree may be deeper than Python's recursion limit.
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
    """Returns the names in a directory, sorted; with `recursive` the paths of everything below it.

    Args:
      url: A path or url.
      recursive: Whether to list the content of subdirectories, too. The paths are relative to `url`.
      remove_sep: False to end the names of directories with a slash.
      skip_file: Whether to omit files.
      skip_dir: Whether to omit directories (but not, with `recursive`, their content).
      recurisive: The same as `recursive`, as spelled in the documentation of the original MoXing.

    Raises:
      MoxFileNotExistsException: The directory does not exist.
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
    if remote := find_remote(url, "url"):
        from moxing.framework.file.remote.listing import has_path, read_entries, read_tree

        entries = filter(has_path, (read_tree if recursive or recurisive else read_entries)(remote, "url"))
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
    """Returns the size of a file in bytes. For a directory: 0, or with `recursive` the sum of all files below it.

    Raises:
      MoxFileNotExistsException: `url` does not exist.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', 'hello')
      ...     mox.file.get_size(folder), mox.file.get_size(folder, recursive=True)
      (0, 5)
    """
    if remote := find_remote(url, "url"):
        found = remote.backend.stat(remote.path)
        if found is None:
            raise not_exists("url", remote.url)
        if not found.is_directory or not (recursive or recurisive):
            return found.length
        return sum(entry.length for entry in remote.backend.tree(remote.path) if not entry.is_directory)
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
    # A broken link is part of the tree, but has no content.
    return os.path.getsize(path) if os.path.exists(path) else 0


def glob(url: Url, *, recursive: bool = False) -> list[str]:
    """Returns the paths that match a pattern, sorted. They are absolute if the pattern is absolute.

    Args:
      url: A pattern with `*`, `?` and `[...]`, a path or url. The matches of a `file://` url are local paths.
      recursive: Whether `**` matches any number of directories.

    Example:
      >>> import moxing as mox, os, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.jpg', '')
      ...     mox.file.write(folder + '/b.txt', '')
      ...     [os.path.basename(path) for path in mox.file.glob(folder + '/*.jpg')]
      ['a.jpg']
    """
    if remote := find_remote(url, "url"):
        from moxing.framework.file.remote.listing import glob_remote

        return glob_remote(remote, recursive)
    import glob as glob_module

    return sorted(glob_module.glob(local_path(url, "url"), recursive=recursive))


def scan_dir(url: Url) -> Any:
    """Returns an iterator over the entries of a directory, each with `name`, `path`, `is_dir()`, `is_file()`, `stat()`.

    It works as `os.scandir` and is a context manager, too.

    Raises:
      MoxFileNotExistsException: The directory does not exist.
      NotADirectoryError: `url` is a file.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', '')
      ...     [(entry.name, entry.is_dir()) for entry in mox.file.scan_dir(folder)]
      [('a.txt', False)]
    """
    if remote := find_remote(url, "url"):
        from moxing.framework.file.remote.listing import Scan

        return Scan(remote)
    return os.scandir(_directory(url))


def walk(
    url: Url,
    topdown: bool = True,
    onerror: Callable[[OSError], object] | None = None,
    followlinks: bool = False,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walks a directory tree as `os.walk` does: yields directory, names of subdirectories, names of files.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', '')
      ...     [(dirs, files) for _, dirs, files in mox.file.walk(folder)]
      [([], ['a.txt'])]
    """
    if remote := find_remote(url, "url"):
        from moxing.framework.file.remote.listing import walk_remote

        return walk_remote(remote, topdown, onerror)
    return os.walk(local_path(url, "url"), topdown, onerror, followlinks)


def _directory(url: Url) -> str:
    path = local_path(url, "url")
    if not os.path.exists(path):
        raise not_exists("url", path, "no such directory")
    if not os.path.isdir(path):
        raise not_a_directory("url", path, "give the path of a directory")
    return path
