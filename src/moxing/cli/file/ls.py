"""`moxing file ls`: lists files and directories."""

from __future__ import annotations

import argparse
import time
from typing import Any

from moxing.cli.file.paths import EXIT_CODES, PATTERNS, Item, expand, tree, with_slash
from moxing.cli.output import human_size, show
from moxing.framework.file.urls import join

_EPILOG = f"""
{PATTERNS}

examples:
  moxing file ls s3://bucket/data
  moxing file ls -l --human 's3://bucket/data/*.tfrecord'
  moxing file ls -r s3://bucket/data

{EXIT_CODES}
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing file`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "ls",
        help="list files and directories",
        description="Lists the content of a directory, or a file, one path per line; directories end in a slash.\n"
        "For a pattern it lists the matches, and with --recursive their content, too.",
        epilog=_EPILOG,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="path, url or pattern")
    parser.add_argument("-l", "--long", action="store_true", help="print size in bytes and modification time, too")
    parser.add_argument("-r", "--recursive", action="store_true", help="list everything below a directory")
    parser.add_argument("--human", action="store_true", help="as --long, with sizes such as 1.5 MB")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    items = [one for item in expand(arguments.paths) for one in _listed(item, arguments.recursive)]
    if not arguments.long and not arguments.human:
        for item in items:
            show(item.shown)
        return 0
    sizes = [_size(item, arguments.human) for item in items]
    width = max(map(len, sizes), default=0)
    for item, size in zip(items, sizes, strict=True):
        show(f"{size:>{width}}  {_time(item.mtime_nsec):<19}  {item.shown}")
    return 0


def _listed(item: Item, recursive: bool) -> list[Item]:
    if not item.is_directory:
        return [item]
    if recursive:
        own = [item] if item.from_pattern else []
        return own + [
            Item(join(item.url, entry.relative), entry.is_directory, entry.length, entry.mtime_nsec)
            for entry in tree(item.url)
        ]
    if item.from_pattern:
        return [item]
    import moxing as mox

    entries = []
    for entry in mox.file.scan_dir(with_slash(item.url)):
        try:
            status = entry.stat()
        except FileNotFoundError:
            status = entry.stat(follow_symlinks=False)  # a link to nothing
        entries.append(Item(join(item.url, entry.name), entry.is_dir(), status.st_size, status.st_mtime_ns))
    return sorted(entries, key=lambda entry: entry.url)


def _size(item: Item, human: bool) -> str:
    if item.is_directory:
        return "-"
    return human_size(item.length) if human else str(item.length)


def _time(nanoseconds: int) -> str:
    # A directory of a store has none.
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(nanoseconds / 1e9)) if nanoseconds else ""
