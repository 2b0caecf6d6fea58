"""`moxing data split`: copies an image folder into training and evaluation folders."""

from __future__ import annotations

import argparse
import os
from typing import Any

from moxing.cli.output import parse_splits, show, show_table

ARGUMENTS = {"split_spec": "--spec"}

_SHOWN_CLASSES = 40
_EXAMPLE = """
example:
  moxing data split flowers flowers_split --spec train:0.9,eval:0.1

exit codes: 0 done, 2 nothing done because an argument or the folder is wrong
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing data`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "split",
        help="copy an image folder into training and evaluation folders",
        description="Copies SRC/<class>/<image> to DST/<split>/<class>/<image>. Every class is split by the same "
        "fractions,\nthe same way in every call. After an interruption the same command resumes.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("src", metavar="SRC", help="folder with one folder of images per class, a path or a url")
    parser.add_argument("dst", metavar="DST", help="local directory for the splits")
    parser.add_argument(
        "--spec", type=parse_splits, default="train:0.9,eval:0.1", help="splits and their fractions (%(default)s)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing splits")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from moxing.tensorflow.datasets.raw.folders import list_image_folder
    from moxing.tensorflow.datasets.tools.split import split_image_classification_dataset

    splits = split_image_classification_dataset(arguments.spec, arguments.src, arguments.dst, arguments.overwrite)
    found = {split: list_image_folder(os.path.join(arguments.dst, split), "dst_dir").classes for split in splits}
    names = list(next(iter(found.values())))
    show(f"{arguments.dst}: {sum(splits.values()):,} files in {len(splits)} splits")
    rows = [["class", *splits]]
    rows += [[name, *(f"{len(found[split][name]):,}" for split in splits)] for name in names[:_SHOWN_CLASSES]]
    if len(names) > _SHOWN_CLASSES:
        rows.append([f"and {len(names) - _SHOWN_CLASSES} more", *("" for _ in splits)])
    rows.append(["total", *(f"{count:,}" for count in splits.values())])
    show_table(rows)
    return 0
