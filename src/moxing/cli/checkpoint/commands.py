"""`moxing checkpoint`: shows, compares and converts checkpoints."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from moxing.cli.command import runner

_SHOW = """
examples:
  moxing checkpoint show log
    lists the variables of the newest checkpoint in the directory log
  moxing checkpoint show resnet_v1_50.ckpt --like block4
    lists the variables whose names contain block4
  moxing checkpoint show log/model.ckpt-100 --values 'conv1/.*weights$'
    prints the minimum, maximum and mean of these variables; --values . selects all

exit codes: 0 success, 1 --values found NaN or infinite values, 2 an argument or the checkpoint is wrong
"""
_DIFF = """
examples:
  moxing checkpoint diff resnet_v1_50.ckpt zoo:resnet_v1_50
    shows whether the network of the zoo can be restored from the checkpoint
  moxing checkpoint diff resnet_v1_50.ckpt zoo:resnet_v1_50:5
    the same with 5 classes
  moxing checkpoint diff log/model.ckpt-0 log/model.ckpt-100 --values --tolerance 1e-6
    shows which variables were trained, the largest difference first

zoo:NAME has as many classes as the published weights of the network: 1000 or 1001.
Lists are cut after 20 variables; --all shows the rest.
Optimizer slots are one line. A network has neither slots nor global_step: compared with one, they are no difference.

exit codes: 0 the same, 1 different, 2 an argument or a checkpoint is wrong
"""
_CONVERT = """
examples:
  moxing checkpoint convert resnet_v1_50.ckpt v2/model.ckpt --state
    writes a checkpoint of 2016 in the V2 format; v2 is then a directory for --checkpoint_path
  moxing checkpoint convert log half/model.ckpt --dtype float16 --exclude '/Momentum$'
    halves the size, and excludes the variables of the optimizer
  moxing checkpoint convert log new/model.ckpt --rename '^resnet_v1_50/=backbone/' 'biases$=bias'
    renames variables

The checkpoint is written under a temporary name, read back, compared, and then renamed, the index last.

exit codes: 0 success, 2 an argument or the checkpoint is wrong, nothing was written
"""


def add_commands(commands: Any) -> None:
    """Adds `moxing checkpoint` and its sub-commands to the parser of `moxing`."""
    checkpoint = commands.add_parser("checkpoint", help="show, compare and convert checkpoints")
    subcommands = checkpoint.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_show, _add_diff, _add_convert):
        parser = add(subcommands)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.set_defaults(function=runner(parser.prog, _run, {}))


def _run(arguments: argparse.Namespace) -> int:
    # Imported here, since these modules import TensorFlow, which `--help` does not need.
    module = importlib.import_module(f"moxing.cli.checkpoint.{arguments.command}")
    return int(module.run(arguments))


def _add_show(commands: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "show",
        help="list the variables of a checkpoint, or show statistics of their values",
        description="Lists names, shapes and types of the variables in a checkpoint of the V1 or V2 format.",
        epilog=_SHOW,
    )
    parser.set_defaults(command="show")
    parser.add_argument(
        "path", metavar="PATH", help="a checkpoint, path or url: prefix, one of its files, or directory"
    )
    parser.add_argument("--like", metavar="REGEX", help="select variables whose names contain this regular expression")
    parser.add_argument("--values", metavar="NAME", help="show statistics of these variables; a regular expression")
    return parser


def _add_diff(commands: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "diff",
        help="compare two checkpoints, or a checkpoint and a network of the zoo",
        description="Shows how two checkpoints differ: in variables, shapes, types and, with --values, in values.\n"
        "Each of A and B is a checkpoint (prefix, file or directory) or a network: zoo:NAME or zoo:NAME:NUM_CLASSES.",
        epilog=_DIFF,
    )
    parser.set_defaults(command="diff")
    parser.add_argument("a", metavar="A", help="checkpoint, or zoo:NAME")
    parser.add_argument("b", metavar="B", help="checkpoint, or zoo:NAME")
    parser.add_argument("--values", action="store_true", help="compare the values too")
    parser.add_argument("--tolerance", type=float, metavar="X", help="with --values: ignore differences up to X (0)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="show complete lists, and treat optimizer slots and global_step like other variables",
    )
    return parser


def _add_convert(commands: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "convert",
        help="write a checkpoint in the V2 format; change types or names, exclude variables",
        description="Writes the checkpoint SOURCE, of the V1 or V2 format, as TARGET in the V2 format.",
        epilog=_CONVERT,
    )
    parser.set_defaults(command="convert")
    parser.add_argument(
        "source", metavar="SOURCE", help="a checkpoint, path or url: prefix, one of its files, or directory"
    )
    parser.add_argument("target", metavar="TARGET", help="prefix of the new checkpoint, such as new/model.ckpt")
    parser.add_argument(
        "--dtype",
        choices=["float16", "bfloat16", "float32"],
        help="type of all floating-point variables; others, such as global_step, do not change",
    )
    parser.add_argument(
        "--clip", action="store_true", help="clip values that do not fit into --dtype to its largest value"
    )
    parser.add_argument("--like", metavar="REGEX", help="select variables whose names contain this regular expression")
    parser.add_argument(
        "--exclude", metavar="REGEX", help="exclude variables whose names contain this regular expression"
    )
    parser.add_argument(
        "--rename",
        metavar="FROM=TO",
        nargs="+",
        action="extend",
        default=[],
        help="replace FROM, a regular expression, by TO (\\1 is its first group) in the names; applied in order",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing checkpoint")
    parser.add_argument(
        "--state",
        action="store_true",
        help="make TARGET the latest checkpoint in the `checkpoint` file of its directory",
    )
    return parser
