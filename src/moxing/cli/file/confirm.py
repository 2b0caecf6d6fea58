"""Asks on a terminal before many files are removed."""

from __future__ import annotations

import argparse
import sys

from moxing.cli.output import file_count, human_size
from moxing.framework.util.terminal import has_terminal, is_terminal

#: More files are removed only after a question.
MANY_FILES = 1000


class NotConfirmedError(ValueError):
    """The answer to the question was not yes."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options -i and --yes."""
    parser.add_argument("-i", "--interactive", action="store_true", help="ask before anything is removed")
    parser.add_argument(
        "-y", "--yes", action="store_true", help=f"do not ask. Default: ask on a terminal above {MANY_FILES:,} files"
    )


def confirm(arguments: argparse.Namespace, files: int, size: int, place: str) -> None:
    """Asks whether the files may be removed, if the options say so. In a script, without a terminal, nobody is asked.

    Args:
      arguments: has the options of `add_options` and --dry-run.
      files: how many files would be removed.
      size: their size in bytes.
      place: what the question names.

    Raises:
      NotConfirmedError: the answer was not yes, or there is no answer.
    """
    if arguments.dry_run or arguments.yes or not files:
        return
    if not arguments.interactive and (files <= MANY_FILES or not (is_terminal(sys.stdin) and has_terminal())):
        return
    question = f"remove {file_count(files)}, {human_size(size)}, in {place}? [y/N] "
    print(question.encode("utf-8", "replace").decode(), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmedError("not confirmed, nothing was removed; --yes does not ask.")
