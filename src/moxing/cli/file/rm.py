"""`moxing file rm`: removes files and directories and prints their names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import moxing as mox
from moxing.cli.file.confirm import add_options, confirm
from moxing.cli.file.paths import EXIT_CODES, PATTERNS, Item, expand, own_tree
from moxing.cli.output import file_count, human_size, show
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.errors import is_a_directory
from moxing.framework.file.operations import check_removable
from moxing.framework.file.urls import find_remote, join

_THREADS = 16
_EPILOG = f"""
{PATTERNS}

examples:
  moxing file rm s3://bucket/notes.txt
  moxing file rm --dry-run -r 's3://bucket/runs/2024-*'

{EXIT_CODES}
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing file`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "rm",
        help="remove files and directories",
        description="Removes files, and with --recursive directories with their content. Every path is checked\n"
        "before anything is removed: . and .., the root of a file system, the home directory and a whole bucket are\n"
        "refused. For a local link, only the link is removed.",
        epilog=_EPILOG,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="path, url or pattern")
    parser.add_argument("-r", "--recursive", action="store_true", help="remove directories, too")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be removed")
    add_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    singles, directories = _find(arguments.paths, arguments.recursive)
    for item in directories:
        if not arguments.recursive:
            raise is_a_directory("url", item.url, "--recursive removes it with its content")
        check_removable(item.url, "url")
    named = {item.url for item in singles}
    trees = [(item, _files(item.url, named)) for item in directories]
    lengths = [item.length for item in singles] + [entry.length for _, entries in trees for entry in entries]
    size, number = sum(lengths), len(lengths)
    confirm(arguments, number, size, " ".join(arguments.paths))
    word = "would remove" if arguments.dry_run else "removed"
    if not arguments.dry_run:
        _remove_files(item.url for item in singles)
    for item in singles:
        show(f"{word} {item.url}")
    for item, entries in trees:
        if not arguments.dry_run:
            remove_directory(item.url)
        for entry in entries:
            show(f"{word} {join(item.url, entry.relative)}")
        show(f"{word} {item.shown}")
    show(f"{word} {file_count(number)}, {human_size(size)}")
    return 0


def _files(directory: str, named: set[str]) -> list[FileEntry]:
    """Returns the files of a directory, without those that were named themselves."""
    entries = [entry for entry in own_tree(directory) if not entry.is_directory]
    return [entry for entry in entries if join(directory, entry.relative) not in named]


def _find(paths: list[str], recursive: bool) -> tuple[list[Item], list[Item]]:
    """Returns the files and directories to remove. A key of a store may be both."""
    items = expand(paths, links=True)
    singles = [item for item in items if not item.is_directory]
    directories = [item for item in items if item.is_directory]
    if recursive:
        remote = [item for item in singles if find_remote(item.url, "url") is not None]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="mox-find") as pool:
            both = pool.map(mox.file.is_directory, [item.url for item in remote])
            directories += [Item(item.url, True) for item, is_both in zip(remote, both, strict=True) if is_both]
    return singles, _outermost(directories)


def _outermost(directories: list[Item]) -> list[Item]:
    """Returns the directories that are not inside another one; `**` matches both."""
    urls = {item.url for item in directories}
    return [item for item in directories if not any(parent in urls for parent in _parents(item.url))]


def _parents(url: str) -> list[str]:
    parts = url.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _remove_files(urls: Iterable[str]) -> None:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="mox-remove") as pool:
        for _ in pool.map(remove_file, urls):
            pass


def remove_file(url: str) -> None:
    """Removes a file or a local link."""
    if remote := find_remote(url, "url"):
        remote.backend.remove_file(remote.path)
    else:
        os.unlink(url)


def remove_directory(url: str) -> None:
    """Removes a directory and its content."""
    if remote := find_remote(url, "url"):
        remote.backend.remove_tree(remote.path)
    else:
        import shutil

        shutil.rmtree(url)
