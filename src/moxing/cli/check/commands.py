"""`moxing check PATH`: says what of a TensorFlow 1 program runs here, without running it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import moxing
from moxing.cli.command import runner

_EXAMPLE = """
examples:
  moxing check train.py
    what the script uses, what is missing, and what to use instead
  moxing check project --html report.html
    a whole repository, and a page with its source and the findings
  moxing check project --json > report.json

The program is read, not executed. Judged are imports, attributes of modules and classes, and the arguments of calls
of functions that are found this way. Methods of other objects are not judged.

exit codes: 0 nothing is missing, 1 something is missing, 2 an argument is wrong
"""


def add_commands(commands: Any) -> None:
    """Adds `check` to the parser of the `moxing` command."""
    parser = commands.add_parser(
        "check",
        help="say what of a TensorFlow 1 program runs here, without running it",
        description="Reads a script or a directory of TensorFlow 1 code, and says what runs here, what serves it, and "
        "what is missing.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", metavar="PATH", help="a script, or a directory")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--html", metavar="FILE", help="write a page with the source and the findings")
    parser.add_argument("-v", "--verbose", action="store_true", help="list all files and all names")
    parser.set_defaults(function=_check)


def _check(arguments: argparse.Namespace) -> int:
    with _without_current_directory():
        return runner("moxing check", _run, {"url": "--html"})(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from moxing.cli.check import checker, html, text
    from moxing.framework.file.atomic_write import check_target, replace_file

    if arguments.html is not None:
        check_target(arguments.html, "url")
    report = checker.check(arguments.path)
    if arguments.html is not None:
        content = html.page(report).encode("utf-8", "replace")
        replace_file(arguments.html, "url", lambda stream: stream.write(content), durable=False)
    if arguments.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        text.print_report(report, arguments.verbose)
    return 1 if report.missing else 0


@contextmanager
def _without_current_directory() -> Iterator[None]:
    """Takes the current directory off `sys.path`, where `python -m` puts it.

    Otherwise a library would import a module of the program that is called as one of Python's, and so execute it.
    """
    here, before = os.path.realpath(os.getcwd()), list(sys.path)
    own = os.path.realpath(os.path.join(os.path.dirname(moxing.__file__), os.pardir))
    sys.path[:] = [entry for entry in before if os.path.realpath(entry) != here or here == own]
    try:
        yield
    finally:
        sys.path[:] = before
