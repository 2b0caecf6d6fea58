"""`moxing file du`: sizes and numbers of files."""

from __future__ import annotations

import argparse
from typing import Any

from moxing.cli.file.paths import EXIT_CODES, PATTERNS, Item, expand, tree
from moxing.cli.output import file_count, human_size, show
from moxing.framework.file.urls import join

_EPILOG = f"""
{PATTERNS}

examples:
  moxing file du --human s3://bucket/data
  moxing file du --depth 1 s3://bucket/data

{EXIT_CODES}
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing file`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "du",
        help="add up the sizes of files",
        description="Prints the bytes in files and below directories, the number of files, and the path.",
        epilog=_EPILOG,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="path, url or pattern")
    parser.add_argument("--human", action="store_true", help="print sizes such as 1.5 MB instead of bytes")
    parser.add_argument(
        "--depth", type=_depth, default=0, metavar="N", help="print subdirectories down to N levels, too (%(default)s)"
    )
    return parser


def _depth(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 or a positive integer")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    items = expand(arguments.paths)
    rows: list[tuple[int, int, str]] = []
    total, count = 0, 0
    for item in items:
        sums = _sums(item, arguments.depth)
        rows += ((size, number, path) for path, (size, number) in sums.items())
        total, count = total + rows[-1][0], count + rows[-1][1]
    if len(items) > 1:
        rows.append((total, count, "total"))
    texts = [
        (human_size(size) if arguments.human else str(size), file_count(number), path) for size, number, path in rows
    ]
    widths = [max(len(row[column]) for row in texts) for column in range(2)]
    for size, number, path in texts:
        show(f"{size:>{widths[0]}}  {number:>{widths[1]}}  {path}")
    return 0


def _sums(item: Item, depth: int) -> dict[str, tuple[int, int]]:
    """Bytes and files of the directories down to `depth`, the item itself last."""
    if not item.is_directory:
        return {item.shown: (item.length, 1)}
    below: dict[str, tuple[int, int]] = {}
    size, number = 0, 0
    for entry in tree(item.url):
        parts = entry.relative.split("/")
        # A file counts for each directory above it.
        above = ["/".join(parts[:level]) for level in range(1, min(depth, len(parts) - 1) + 1)]
        if entry.is_directory:
            if len(parts) <= depth:
                below.setdefault(entry.relative, (0, 0))
            continue
        size, number = size + entry.length, number + 1
        for directory in above:
            known = below.get(directory, (0, 0))
            below[directory] = (known[0] + entry.length, known[1] + 1)
    rows = {join(item.url, name) + "/": below[name] for name in sorted(below, key=lambda name: name.split("/"))}
    return rows | {item.shown: (size, number)}
