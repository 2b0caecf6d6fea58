"""The command `moxing file` and its subcommands."""

from __future__ import annotations

import argparse
from typing import Any

from moxing.cli.command import light_runner
from moxing.cli.file import cat, cp, du, ls, rm, sync

_DESCRIPTION = """Lists, copies, shows and removes files. A PATH is a local path or a url: s3://bucket/key,
obs://bucket/key, or another scheme that fsspec serves. Keys and address of a store come from the environment
(ACCESS_KEY_ID, SECRET_ACCESS_KEY, S3_ENDPOINT), or from botocore if it is installed (profiles, roles)."""

#: Error messages name arguments of functions; users know those of the command.
_ARGUMENTS = {"url": "PATH", "src_url": "SRC", "dst_url": "DST", "threads=": "--threads=", "file_list": "SRC"}


def add_commands(commands: Any) -> None:
    """Adds `moxing file` and its subcommands to the parser of `moxing`."""
    file = commands.add_parser(
        "file",
        help="list, copy, show and remove files on disks and object stores",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subcommands = file.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (ls, cp, cat, rm, du, sync):
        parser = module.add_command(subcommands)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.set_defaults(function=light_runner(parser.prog, module.run, _ARGUMENTS))
