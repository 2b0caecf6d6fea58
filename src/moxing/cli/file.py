"""`moxing file`: files on disks and object stores, from the command line."""

from __future__ import annotations

import argparse
from typing import Any

from moxing.cli import file_cat, file_cp, file_du, file_ls, file_rm, file_sync
from moxing.cli.command import light_runner

_DESCRIPTION = """Lists, copies, shows and removes files. A PATH is a local path or a url: s3://bucket/key,
obs://bucket/key, or another scheme that fsspec has a package for. How a store is reached is in the
environment (ACCESS_KEY_ID, SECRET_ACCESS_KEY, S3_ENDPOINT) or in an AWS profile."""

#: The functions behind the commands name their arguments in messages; a user knows the command's.
_ARGUMENTS = {"url": "PATH", "src_url": "SRC", "dst_url": "DST", "threads=": "--threads=", "file_list": "SRC"}


def add_commands(commands: Any) -> None:
    """Adds `moxing file` and its own sub-commands to the parser of `moxing`."""
    file = commands.add_parser(
        "file",
        help="list, copy, show and remove files on disks and object stores",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subcommands = file.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (file_ls, file_cp, file_cat, file_rm, file_du, file_sync):
        parser = module.add_command(subcommands)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.set_defaults(function=light_runner(parser.prog, module.run, _ARGUMENTS))
