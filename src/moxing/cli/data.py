"""`moxing data`: splits, converts and inspects data sets of images."""

from __future__ import annotations

import argparse
from typing import Any

from moxing.cli import data_convert, data_inspect, data_split
from moxing.cli.command import runner

#: The functions behind the commands name their arguments in messages; a user knows the command's.
_ARGUMENTS = {
    "src_dir": "SRC",
    "dst_dir": "DST",
    "base_dir": "DIR",
    "overwrite=True": "--overwrite",
    "mox.file.copy_parallel": "moxing file cp -r",
    # Words that messages use in their common sense too: they are arguments before an equals sign only.
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
    data = commands.add_parser("data", help="split, convert and inspect data sets of images")
    subcommands = data.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (data_split, data_convert, data_inspect):
        parser = module.add_command(subcommands)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.set_defaults(function=runner(parser.prog, module.run, _ARGUMENTS | module.ARGUMENTS))
