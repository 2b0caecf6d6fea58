"""The paths on the command lines of `moxing file`: patterns, kinds, trees."""

from __future__ import annotations

import argparse
import errno
import glob as glob_module
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import moxing as mox
from moxing.framework.file.backends import find_place
from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import not_a_directory, not_exists
from moxing.framework.file.paths import local_path

PATTERNS = """patterns: * ? [...] and ** (any number of directories) match in local paths and in keys; quote them, so
that the shell leaves them alone. A name that exists as it stands is taken as it stands."""
EXIT_CODES = "exit codes: 0 done, 2 an argument is wrong or something failed, 130 interrupted"
_LOOKS_AT_ONCE = 16


@dataclass(frozen=True)
class Item:
    """A file or directory that a path on the command line leads to; the url has no slash at its end.

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
        """The last part of the url; of a local path such as `..` what the directory is really called."""
        last = self.url.rpartition("/")[2]
        if last in (os.curdir, os.pardir) and find_place(self.url, "url") is None:
            return os.path.basename(os.path.realpath(self.url))
        return last

    @property
    def shown(self) -> str:
        """The url, a directory's with a slash."""
        return with_slash(self.url) if self.is_directory else self.url


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Adds the option that says how many files are copied at once."""
    parser.add_argument("--threads", type=_positive, default=16, metavar="N", help="files at a time (%(default)s)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a positive integer")
    return int(text)


def with_slash(url: str) -> str:
    """A directory as it is shown.

    Example:
      >>> with_slash('a'), with_slash('/')
      ('a/', '/')
    """
    return url if url.endswith("/") else f"{url}/"


def join(directory: str, relative: str) -> str:
    """Something in a directory.

    Example:
      >>> join('s3://bucket', 'a'), join('/', 'a')
      ('s3://bucket/a', '/a')
    """
    return with_slash(directory) + relative


def bare(word: str, argument: str = "url") -> str:
    """A path without slashes at its end, and without `file://`.

    Example:
      >>> bare('s3://bucket/data/'), bare('/'), bare('file:///data')
      ('s3://bucket/data', '/', '/data')
    """
    if find_place(word, argument) is None:
        word = local_path(word, argument)
    return word.rstrip("/") or "/"


def look(word: str, argument: str = "url", links: bool = False) -> Item:
    """What is at a path; one that ends in a slash has to be a directory.

    Args:
      word: The path or url.
      argument: What errors call it.
      links: Whether a local link counts as a file of its own, whatever it leads to.

    Example:
      >>> look('/').is_directory
      True
    """
    url = bare(word, argument)
    if links and os.path.islink(url) and find_place(url, argument) is None:
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
    """What paths and patterns lead to, each thing once. A pattern that nothing matches is an error."""
    found: dict[str, Item] = {}
    for word in words:
        for item in _expand_one(word, argument, links):
            found.setdefault(item.url, item)
    return list(found.values())


def _expand_one(word: str, argument: str, links: bool) -> list[Item]:
    if not glob_module.has_magic(word) or _is_there(bare(word, argument)):
        return [look(word, argument, links)]
    matches = mox.file.glob(local_path(word, argument) if find_place(word, argument) is None else word, recursive=True)
    if not matches:
        raise FileNotFoundError(errno.ENOENT, f"{argument}: nothing matches this pattern", word)
    with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="mox-look") as pool:
        items = list(pool.map(lambda match: look(match, argument, links), matches))
    return [replace(item, from_pattern=True) for item in items]


def _is_there(url: str) -> bool:
    return os.path.lexists(url) if find_place(url, "url") is None else mox.file.exists(url)


def tree(directory: str) -> list[RemoteEntry]:
    """All that is below a directory, in the order of the names; links to local directories are followed."""
    if place := find_place(directory, "url"):
        from moxing.framework.file.remote_listing import read_tree

        return read_tree(place, "url")
    from moxing.framework.file.listing import iterate_tree

    entries = []
    for entry in iterate_tree(directory):
        path = os.path.join(directory, entry.relative)
        if entry.is_loop:
            raise OSError(errno.ELOOP, "a link to a directory above it", path)
        entries.append(_local_entry(path, entry.relative, entry.is_directory))
    return entries


def own_tree(directory: str) -> list[RemoteEntry]:
    """The same without following links: what would go if the directory was removed. A link is an entry by itself."""
    if find_place(directory, "url"):
        return tree(directory)
    entries = []
    for path, directories, files in os.walk(directory):
        directories.sort()
        links = [name for name in directories if os.path.islink(os.path.join(path, name))]
        for name in sorted([*directories, *files]):
            own = os.path.join(path, name)
            is_directory = name in directories and name not in links
            entries.append(_local_entry(own, os.path.relpath(own, directory), is_directory))
    return sorted(entries, key=lambda entry: entry.relative.split("/"))


def _local_entry(path: str, relative: str, is_directory: bool) -> RemoteEntry:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = os.lstat(path)  # a link to nothing
    return RemoteEntry(relative, is_directory, 0 if is_directory else status.st_size, status.st_mtime_ns)
