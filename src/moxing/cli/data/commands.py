"""`moxing data`: splits, converts and inspects datasets of images."""

from __future__ import annotations

import argparse
from typing import Any

from moxing.cli.command import runner
from moxing.cli.data import convert, inspect, split

#: Messages name the arguments of the Python functions; these are the names on the command line.
_ARGUMENTS = {
    "src_dir": "SRC",
    "dst_dir": "DST",
    "base_dir": "DIR",
    "overwrite=True": "--overwrite",
    "mox.file.copy_parallel": "moxing file cp -r",
    # Common words: they are arguments only before an equals sign.
    "directory=": "DIR=",
    "resize_short_side=": "--resize-short-side=",
    "shards=": "--shards=",
    "prefix=": "--prefix=",
    "threads=": "--threads=",
    "samples=": "--samples=",
    "size=": "--size=",
    "output_height=": "--size=",
    "output_width=": "--size=",
    "file_pattern=": "--pattern=",
}


def add_commands(commands: Any) -> None:
    """Adds `moxing data` and its own sub-commands to the parser of `moxing`."""
    data = commands.add_parser("data", help="split, convert and inspect datasets of images")
    subcommands = data.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (split, convert, inspect):
        parser = module.add_command(subcommands)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.set_defaults(function=runner(parser.prog, module.run, _ARGUMENTS | module.ARGUMENTS))
