"""The PATH arguments of `moxing file`: patterns, files and directories, directory trees."""

from __future__ import annotations

import argparse
import errno
import glob as glob_module
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import moxing as mox
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.errors import not_a_directory, not_exists
from moxing.framework.file.urls import Location, find_remote, local_path, resolve

PATTERNS = """patterns: * ? [...] and ** (any number of directories) match in local paths and in keys; quote them, so
that the shell leaves them alone. A name that exists literally is not treated as a pattern."""
EXIT_CODES = "exit codes: 0 done, 2 an argument is wrong or something failed, 130 interrupted"
_THREADS = 16


@dataclass(frozen=True)
class Item:
    """A file or directory that a PATH argument names. The URL has no slash at the end.

    Example:
      >>> Item('s3://bucket/data', is_directory=True).name
      'data'
    """

    url: str
    is_directory: bool
    length: int = 0
    mtime_nsec: int = 0
    from_pattern: bool = False

    @property
    def name(self) -> str:
        """The last part of the URL; for a local path such as `..` the real name of the directory."""
        last = self.url.rpartition("/")[2]
        if last in (os.curdir, os.pardir) and find_remote(self.url, "url") is None:
            return os.path.basename(os.path.realpath(self.url))
        return last

    @property
    def shown(self) -> str:
        """The URL; that of a directory ends in a slash."""
        return with_slash(self.url) if self.is_directory else self.url

    @property
    def location(self) -> Location:
        """The resolved URL."""
        return resolve(self.url, "src_url")


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Adds the option --threads."""
    parser.add_argument("--threads", type=_positive, default=16, metavar="N", help="files at a time (%(default)s)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a positive integer")
    return int(text)


def with_slash(url: str) -> str:
    """Returns the URL of a directory with a slash at the end.

    Example:
      >>> with_slash('a'), with_slash('/')
      ('a/', '/')
    """
    return url if url.endswith("/") else f"{url}/"


def strip_slashes(word: str, argument: str = "url") -> str:
    """Returns a path without slashes at the end and without `file://`.

    Example:
      >>> strip_slashes('s3://bucket/data/'), strip_slashes('/'), strip_slashes('file:///data')
      ('s3://bucket/data', '/', '/data')
    """
    if find_remote(word, argument) is None:
        word = local_path(word, argument)
    return word.rstrip("/") or "/"


def find_item(word: str, argument: str = "url", links: bool = False) -> Item:
    """Returns the file or directory at a path. A path that ends in a slash must be a directory.

    Args:
      word: The path or url.
      argument: Its name in error messages.
      links: Whether a local symbolic link counts as a file, whatever it points to.

    Example:
      >>> find_item('/').is_directory
      True
    """
    url = strip_slashes(word, argument)
    if links and os.path.islink(url) and find_remote(url, argument) is None:
        return Item(url, False, os.lstat(url).st_size)
    if word.endswith("/") and url != word:
        if mox.file.is_directory(url):
            return Item(url, True)
        if mox.file.exists(url):
            raise not_a_directory(argument, url, "leave out the slash")
        raise not_exists(argument, word)
    try:
        found = mox.file.stat(url)
    except mox.file.MoxFileNotExistsException as error:
        raise FileNotFoundError(error.errno, _renamed(error.strerror or "", argument), word) from None
    return Item(url, found.is_directory, found.length, found.mtime_nsec)


def _renamed(text: str, argument: str) -> str:
    return f"{argument}: {text.removeprefix('url: ')}"


def expand(words: Iterable[str], argument: str = "url", links: bool = False) -> list[Item]:
    """Returns what paths and patterns name, each file or directory once. A pattern without a match is an error."""
    found: dict[str, Item] = {}
    for word in words:
        for item in _expand_one(word, argument, links):
            found.setdefault(item.url, item)
    return list(found.values())


def _expand_one(word: str, argument: str, links: bool) -> list[Item]:
    if not glob_module.has_magic(word) or _exists(strip_slashes(word, argument)):
        return [find_item(word, argument, links)]
    matches = mox.file.glob(local_path(word, argument) if find_remote(word, argument) is None else word, recursive=True)
    if not matches:
        raise FileNotFoundError(errno.ENOENT, f"{argument}: nothing matches this pattern", word)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="mox-find") as pool:
        items = list(pool.map(lambda match: find_item(match, argument, links), matches))
    return [replace(item, from_pattern=True) for item in items]


def _exists(url: str) -> bool:
    return os.path.lexists(url) if find_remote(url, "url") is None else mox.file.exists(url)


def tree(directory: str) -> list[FileEntry]:
    """Returns everything below a directory, sorted by name. Links to local directories are followed."""
    if remote := find_remote(directory, "url"):
        from moxing.framework.file.remote.listing import read_tree

        return read_tree(remote, "url")
    from moxing.framework.file.listing import iterate_tree

    entries = []
    for entry in iterate_tree(directory):
        path = os.path.join(directory, entry.relative)
        if entry.is_loop:
            raise OSError(errno.ELOOP, "a link to a directory above it", path)
        entries.append(_local_entry(path, entry.relative, entry.is_directory))
    return entries


def own_tree(directory: str) -> list[FileEntry]:
    """Returns everything that belongs to a directory and is removed with it. Links are not followed."""
    if find_remote(directory, "url"):
        return tree(directory)
    entries = []
    for path, directories, files in os.walk(directory):
        directories.sort()
        links = [name for name in directories if os.path.islink(os.path.join(path, name))]
        for name in sorted([*directories, *files]):
            full = os.path.join(path, name)
            is_directory = name in directories and name not in links
            entries.append(_local_entry(full, os.path.relpath(full, directory), is_directory))
    return sorted(entries, key=lambda entry: entry.relative.split("/"))


def _local_entry(path: str, relative: str, is_directory: bool) -> FileEntry:
    try:
        status = os.stat(path)
    except OSError:
        status = os.lstat(path)  # a link to nothing or to itself
    return FileEntry(relative, is_directory, 0 if is_directory else status.st_size, status.st_mtime_ns)
