"""The `moxing` command: one sub-command a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from moxing._version import __version__
from moxing.cli import demo, enable, lr, run, zoo
from moxing.cli.check import commands as check
from moxing.cli.checkpoint import commands as checkpoint
from moxing.cli.data import commands as data
from moxing.cli.file import commands as file
from moxing.cli.new import commands as new


class _Parser(argparse.ArgumentParser):
    """Reports an unknown argument with the usage of the sub-command, and not with that of `moxing`."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the `moxing` command and returns its exit code.

    Args:
      argv: the arguments after the name of the command. Default: those of the process.

    Example:
      >>> main(['version']) # doctest: +ELLIPSIS
      moxing-tensorflow ...
      0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["run"]:
        # The arguments after the script belong to the script: argparse must not see them.
        return run.main(words[1:])
    try:
        arguments = _parser().parse_args(words)
        code = int(arguments.function(arguments))
        # Now, and not when Python ends: the reader may have closed the pipe.
        sys.stdout.flush()
    except BrokenPipeError:  # `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="moxing", description="MoXing: TensorFlow 1 training scripts run unchanged.")
    parser.add_argument("--version", action="version", version=f"moxing-tensorflow {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands.add_parser("run", help="run a TensorFlow 1 script unchanged", add_help=False)
    check.add_commands(commands)
    new.add_commands(commands)
    enable.add_commands(commands)
    demo.add_commands(commands)
    data.add_commands(commands)
    file.add_commands(commands)
    checkpoint.add_commands(commands)
    zoo.add_commands(commands)
    lr.add_commands(commands)
    version = commands.add_parser("version", help="print the versions of MoXing, TensorFlow and Python")
    version.set_defaults(function=_version)
    return parser


def _version(arguments: argparse.Namespace) -> int:
    from importlib import metadata

    print(f"moxing-tensorflow {__version__}")
    for name in ("tensorflow", "tf-keras", "tf-slim", "numpy"):
        try:
            print(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed")
    print(f"python {sys.version.split()[0]}")
    return 0
