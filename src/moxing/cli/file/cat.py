"""`moxing file cat`: prints the content of files."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from moxing.cli.file.paths import EXIT_CODES, PATTERNS, expand
from moxing.framework.file.errors import is_a_directory

_CHUNK = 1 << 20
_EPILOG = f"""
{PATTERNS}

examples:
  moxing file cat s3://bucket/notes.txt
  moxing file cat 's3://bucket/logs/*.txt' | grep loss

{EXIT_CODES}
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing file`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "cat",
        help="write the content of files to the standard output",
        description="Writes the content of files to the standard output, byte for byte, one file after the other.",
        epilog=_EPILOG,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="path, url or pattern")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    import moxing as mox

    items = expand(arguments.paths)
    # All of them are looked at before the first byte is out.
    for item in items:
        if item.is_directory:
            raise is_a_directory("url", item.url, "give files, or a pattern for files")
    output = sys.stdout.buffer
    for item in items:
        with mox.file.File(item.url, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                output.write(chunk)
    output.flush()
    return 0
