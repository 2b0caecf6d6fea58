"""`moxing file cp`: copies files and directories between disks and object stores."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import moxing as mox
from moxing.cli.file.paths import EXIT_CODES, PATTERNS, Item, add_threads, expand, strip_slashes, tree
from moxing.cli.output import show
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.errors import is_a_directory, not_a_directory
from moxing.framework.file.urls import Location, RemotePath, resolve

if TYPE_CHECKING:
    from moxing.framework.file.copying.plan import CopyPlan

_EPILOG = f"""
{PATTERNS}

where the copies go (slashes at the end of SRC make no difference):
  cp FILE NAME              NAME
  cp FILE DIRECTORY         DIRECTORY/FILE; a DST that ends in a slash is a directory, even if it does not exist
  cp -r DIRECTORY OTHER     OTHER/..., the content of DIRECTORY, even if OTHER does not exist
  cp A B ... DIRECTORY      DIRECTORY/A, DIRECTORY/B; the same for the matches of a pattern
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
    parser.add_argument("-r", "--recursive", action="store_true", help="copy directories, too")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the name of every file")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be copied")
    add_threads(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from moxing.cli.file.copies import check_files_differ, run_copies, show_plan

    plan = _plan(arguments.sources, arguments.target, arguments.recursive)
    check_files_differ(plan)
    if arguments.dry_run:
        show_plan(plan, "would copy")
        return 0
    amount = run_copies(plan, arguments.threads)
    if arguments.verbose:
        show_plan(plan, "copied")
    show(f"copied {amount}")
    return 0


def _plan(sources: list[str], target: str, recursive: bool) -> CopyPlan:
    from moxing.framework.file.copying.plan import CopyPlan, check_not_inside

    items = expand(sources, "src_url")
    dst = strip_slashes(target, "dst_url")
    for item in items:
        if item.is_directory and not recursive:
            raise is_a_directory("src_url", item.url, "--recursive copies it with its content")
    plan, directory = CopyPlan(), resolve(dst, "dst_url")
    is_directory = target.endswith("/") or mox.file.is_directory(dst)
    if len(sources) == 1 and not items[0].from_pattern:
        item = items[0]
        if item.is_directory:
            check_not_inside(item.location, directory)
            plan.add_tree(item.location, directory, tree(item.url))
        elif is_directory:
            _add_to_directory(plan, item, directory)
        elif isinstance(directory, RemotePath) and "/" not in directory.path:
            raise is_a_directory("dst_url", dst, "give the name of the copy")
        else:
            plan.add_file(item.location, directory, item.length)
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
            check_not_inside(item.location, directory)
            plan.add_tree(item.location, directory, [FileEntry("", True), *tree(item.url)], below=item.name)
        else:
            _add_to_directory(plan, item, directory)
    return plan


def _add_to_directory(plan: CopyPlan, item: Item, directory: Location) -> None:
    parent = item.url[: -len(item.name)].rstrip("/") or ("/" if item.url.startswith("/") else ".")
    entry = FileEntry(item.name, False, item.length, item.mtime_nsec)
    plan.add_tree(resolve(parent, "src_url"), directory, [entry], is_whole=False)
