"""`moxing new`: writes a small project to start from."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import Any

from moxing.cli.command import light_runner
from moxing.cli.new.project import KINDS, write_project
from moxing.cli.output import show
from moxing.framework.util.names import nearest

_EXAMPLE = """
example:
  moxing new classifier my_project
  moxing new classifier my_project --on estimator

exit codes: 0 done, 2 nothing written because an argument is wrong
"""
_NEXT = {
    "classifier": (
        "moxing run train.py --data_dir PHOTOS --log_dir log    # PHOTOS/<class>/<photo>",
        "moxing run export.py --log_dir log",
        "moxing run predict.py --model_dir log/export/servo photo.jpg",
    )
}


def add_commands(commands: Any) -> None:
    """Adds `new` to the parser of the `moxing` command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "new",
        help="write a small project to start from",
        description="Writes a complete project into a new directory. classifier: trains on a folder of photos, one\n"
        "folder per class, evaluates, exports and predicts.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", metavar="KIND", help=f"kind of project: {', '.join(KINDS)}")
    parser.add_argument("directory", metavar="DIR", help="the new directory")
    parser.add_argument("--on", metavar="BASE", help="what it is built on: mox (mox.run, default), estimator")
    parser.set_defaults(function=light_runner(parser.prog, _run, {"directory=": "DIR="}))


def _run(arguments: argparse.Namespace) -> int:
    kind = _known("KIND", arguments.kind, list(KINDS))
    base = _known("--on", arguments.on or KINDS[kind][0], KINDS[kind])
    files = write_project(arguments.directory, kind, base)
    show(f"{os.path.normpath(arguments.directory)}/")
    for line in tree(files):
        show(line)
    show("\nNext:")
    for command in (f"cd {shlex.quote(arguments.directory)}", *_NEXT[kind]):
        show(f"  {command}")
    return 0


def _known(argument: str, value: str, choices: Sequence[str]) -> str:
    if value in choices:
        return value
    near = nearest(value, choices, 1)
    hint = f"did you mean {near[0]}?" if near else f"expected {' or '.join(choices)}."
    raise ValueError(f"{argument}={value!r}: {hint}")


def tree(files: Sequence[str]) -> list[str]:
    """Returns the lines of a drawn tree.

    Args:
      files: relative paths, sorted.

    Example:
      >>> print('\\n'.join(tree(['model.py', 'tests/test_project.py', 'train.py'])))
      ├── model.py
      ├── tests
      │   └── test_project.py
      └── train.py
    """
    branches: dict[str, list[str]] = {}
    for name in files:
        top, _, inner = name.partition("/")
        branches.setdefault(top, []).extend([inner] if inner else [])
    lines = []
    for number, (top, inside) in enumerate(branches.items(), start=1):
        last = number == len(branches)
        lines.append(f"{'└──' if last else '├──'} {top}")
        lines += [f"{'    ' if last else '│   '}{line}" for line in tree(inside)]
    return lines
