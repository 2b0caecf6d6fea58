"""`moxing file rm`: removes files and directories and prints their names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import moxing as mox
from moxing.cli.file.paths import EXIT_CODES, PATTERNS, Item, expand, own_tree
from moxing.cli.output import file_count, human_size, show
from moxing.framework.file.errors import is_a_directory
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
        "before anything is removed. For a local link, only the link is removed.",
        epilog=_EPILOG,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="path, url or pattern")
    parser.add_argument("-r", "--recursive", action="store_true", help="remove directories, too")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be removed")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    singles, directories = _find(arguments.paths, arguments.recursive)
    for item in directories:
        if not arguments.recursive:
            raise is_a_directory("url", item.url, "--recursive removes it with its content")
        if find_remote(item.url, "url") is None and os.path.realpath(item.url) == "/":
            raise ValueError(f"url={item.url!r}: expected a directory other than the root of the file system.")
    size, number = 0, 0
    word = "would remove" if arguments.dry_run else "removed"
    if not arguments.dry_run:
        _remove_files(item.url for item in singles)
    for item in singles:
        show(f"{word} {item.url}")
        size, number = size + item.length, number + 1
    for item in directories:
        entries = own_tree(item.url)
        if not arguments.dry_run:
            remove_directory(item.url)
        for entry in entries:
            if not entry.is_directory:
                show(f"{word} {join(item.url, entry.relative)}")
                size, number = size + entry.length, number + 1
        remote = find_remote(item.url, "url")
        if remote is None or "/" in remote.path:
            # A bucket is never removed.
            show(f"{word} {item.shown}")
    show(f"{word} {file_count(number)}, {human_size(size)}")
    return 0


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
