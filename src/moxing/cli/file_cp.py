"""`moxing file cp`: copies files and directories between disks and stores."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import moxing as mox
from moxing.cli.file_paths import EXIT_CODES, PATTERNS, Item, add_threads, bare, expand, tree
from moxing.cli.output import show
from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import is_a_directory, not_a_directory

if TYPE_CHECKING:
    from moxing.cli.file_plan import CopyPlan

_EPILOG = f"""
{PATTERNS}

where the copies are, with any number of slashes at the end of SRC:
  cp FILE NAME              NAME
  cp FILE DIRECTORY         DIRECTORY/FILE; what ends in a slash is a directory, whether it is there or not
  cp -r DIRECTORY OTHER     OTHER/..., whether OTHER is there or not: what is in the one is then in the other
  cp A B ... DIRECTORY      DIRECTORY/A, DIRECTORY/B; so too for what a pattern matches
A file of the same name is replaced. Everything is checked before the first file is copied.

examples:
  moxing file cp model.pb s3://bucket/models/
  moxing file cp -r s3://bucket/data data
  moxing file cp 's3://bucket/logs/*.txt' logs

{EXIT_CODES}
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing file`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "cp",
        help="copy files and directories",
        description="Copies files, and with --recursive directories: local to store, store to local, store to store, "
        "local to local.",
        epilog=_EPILOG,
    )
    parser.add_argument("sources", metavar="SRC", nargs="+", help="path, url or pattern")
    parser.add_argument("target", metavar="DST", help="path or url")
    parser.add_argument("-r", "--recursive", action="store_true", help="directories, too")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every file")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be copied")
    add_threads(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    plan = _plan(arguments.sources, arguments.target, arguments.recursive)
    if arguments.dry_run:
        plan.show("would copy")
        return 0
    amount = plan.carry_out(arguments.threads)
    if arguments.verbose:
        plan.show("copied")
    show(f"copied {amount}")
    return 0


def _plan(sources: list[str], target: str, recursive: bool) -> CopyPlan:
    from moxing.cli.file_plan import CopyPlan, check_apart

    items = expand(sources, "src_url")
    dst = bare(target, "dst_url")
    for item in items:
        if item.is_directory and not recursive:
            raise is_a_directory("src_url", item.url, "--recursive copies it with all that is in it")
    plan = CopyPlan()
    is_directory = target.endswith("/") or mox.file.is_directory(dst)
    if len(sources) == 1 and not items[0].from_pattern:
        item = items[0]
        if item.is_directory:
            check_apart(item.url, dst)
            plan.add(item.url, dst, tree(item.url))
        elif is_directory:
            _add_file(plan, item, dst)
        else:
            plan.add_file(item.url, dst, item.length)
        return plan
    if not is_directory and mox.file.exists(dst):
        raise not_a_directory("dst_url", dst, "several sources need a directory")
    names: dict[str, str] = {}
    for item in items:
        if item.name in names:
            raise ValueError(
                f"src_url={item.url!r}: expected sources of different names, {names[item.name]!r} has the same."
            )
        names[item.name] = item.url
        if item.is_directory:
            check_apart(item.url, dst)
            plan.add(item.url, dst, [RemoteEntry("", True), *tree(item.url)], below=item.name)
        else:
            _add_file(plan, item, dst)
    return plan


def _add_file(plan: CopyPlan, item: Item, dst: str) -> None:
    directory = item.url[: -len(item.name)].rstrip("/") or ("/" if item.url.startswith("/") else ".")
    entry = RemoteEntry(item.name, False, item.length, item.mtime_nsec)
    plan.add(directory, dst, [entry], is_tree=False)
