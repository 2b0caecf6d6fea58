"""What there is to copy: all entries of a directory, or those that `file_list` names."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator

from moxing.framework.file.entries import FileEntry
from moxing.framework.file.errors import not_exists
from moxing.framework.file.listing import TreeEntry, iterate_tree
from moxing.framework.file.urls import Location, RemotePath
from moxing.framework.util.thread_pool import ThreadPool

_THREADS = 16


def list_source(source: Location, names: list[str] | None) -> list[FileEntry]:
    """Returns everything below a directory, or the named parts of it, each entry once.

    Args:
      source: The directory.
      names: Paths relative to it; a directory stands for everything in it. None for everything.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.makedirs(folder + '/a/b')
      ...     [entry.relative for entry in list_source(folder, ['a', 'a/b'])]
      ['a', 'a/b']
    """
    entries = _list_local(source, names) if isinstance(source, str) else _list_remote(source, names)
    # A file may be named twice, also by its directory. Two downloads to one name would get in each other's way.
    return list({(entry.relative, entry.is_directory): entry for entry in entries}.values())


def _list_local(path: str, names: list[str] | None) -> Iterator[FileEntry]:
    found: Iterable[TreeEntry] = iterate_tree(path) if names is None else _select_local(path, names)
    for entry in found:
        if entry.relative == os.curdir:
            continue
        full = os.path.join(path, entry.relative)
        if entry.is_loop:
            raise OSError(errno.ELOOP, "src_url contains a link to a directory above it", full)
        if not entry.is_directory and not os.path.exists(full):
            raise not_exists("src_url", full, "a link to nothing")
        yield FileEntry(entry.relative, entry.is_directory, 0 if entry.is_directory else os.path.getsize(full))


def _select_local(path: str, names: list[str]) -> Iterator[TreeEntry]:
    for name in names:
        selected = os.path.join(path, name)
        if not os.path.exists(selected):
            raise not_exists("file_list", selected)
        is_directory = os.path.isdir(selected)
        yield TreeEntry(name, is_directory)
        if is_directory:
            for entry in iterate_tree(selected):
                yield TreeEntry(os.path.normpath(os.path.join(name, entry.relative)), entry.is_directory, entry.is_loop)


def _list_remote(source: RemotePath, names: list[str] | None) -> Iterator[FileEntry]:
    if names is None:
        yield from source.backend.tree(source.path)
        return
    with ThreadPool(_THREADS, thread_name_prefix="mox-find") as pool:
        for entries in list(pool.map(lambda name: _select_remote(source, name), names)):
            yield from entries


def _select_remote(source: RemotePath, name: str) -> list[FileEntry]:
    if name == os.curdir:
        return list(source.backend.tree(source.path))
    selected = source.child(name)
    found = selected.backend.stat(selected.path)
    if found is None:
        raise not_exists("file_list", selected.url)
    if not found.is_directory:
        return [FileEntry(name, False, found.length, found.mtime_nsec)]
    below = [entry._replace(relative=f"{name}/{entry.relative}") for entry in selected.backend.tree(selected.path)]
    return [FileEntry(name, True), *below]
