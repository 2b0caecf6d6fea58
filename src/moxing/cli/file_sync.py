"""`moxing file sync`: makes one directory like another with as few copies as possible."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import moxing as mox
from moxing.cli.file_paths import EXIT_CODES, add_threads, bare, join, look, own_tree, tree, with_slash
from moxing.cli.file_rm import remove_file
from moxing.cli.output import files, human_size, show
from moxing.framework.file.backends import find_place
from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import not_a_directory

if TYPE_CHECKING:
    from moxing.cli.file_plan import CopyPlan

#: What transfers of `mox.file` put beside their targets while they run.
_TEMPORARY = re.compile(r"^\.mox-[0-9a-f-]+\.(part|tmp)$")
_AT_ONCE = 16
_EPILOG = f"""
SRC and DST are directories; slashes at their ends change nothing. What is in SRC is afterwards in DST.
A file is copied if DST does not have it, has it with another size, or has an older one than SRC. Times count
because copies are younger than what they were made of: the clocks of both places have to agree. Where a
store's whole seconds do not tell which is younger, and with --checksum always, the contents are compared,
those of a store by their ETags.

examples:
  moxing file sync data s3://bucket/data
  moxing file sync --delete --dry-run s3://bucket/data data

{EXIT_CODES}
"""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Adds the command to the parser of `moxing file`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "sync",
        help="copy what is new or has changed in a directory",
        description="Copies from the directory SRC into the directory DST what is missing there or has changed.",
        epilog=_EPILOG,
    )
    parser.add_argument("source", metavar="SRC", help="directory, a path or url")
    parser.add_argument("target", metavar="DST", help="directory, a path or url; made if it is not there")
    parser.add_argument("--checksum", action="store_true", help="compare sizes and contents, not times")
    parser.add_argument(
        "--delete",
        action="store_true",
        help="then remove from DST what SRC does not have; without it nothing is removed",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="name every file")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be copied and removed")
    add_threads(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from moxing.cli.file_plan import CopyPlan, check_apart

    src, dst = look(arguments.source, "src_url"), bare(arguments.target, "dst_url")
    if not src.is_directory:
        raise not_a_directory("src_url", src.url, "`moxing file cp` copies files")
    if mox.file.exists(dst) and not mox.file.is_directory(dst):
        raise not_a_directory("dst_url", dst, "give the directory to copy into")
    check_apart(src.url, dst, both_ways=True)
    wanted = _entries(tree(src.url))
    present = _entries(own_tree(dst)) if mox.file.is_directory(dst) else []
    plan = CopyPlan()
    changed = _changed(src.url, dst, wanted, present, arguments.checksum)
    # Only new directories: one whose files are all up to date would look empty, and be marked in a store.
    known = {entry.relative for entry in present if entry.is_directory}
    new = [entry for entry in wanted if entry.is_directory and entry.relative not in known]
    plan.add(src.url, dst, new + changed)
    surplus = _surplus(dst, wanted, present) if arguments.delete else []
    return _carry_out(plan, dst, surplus, sum(not entry.is_directory for entry in wanted), arguments)


def _carry_out(plan: CopyPlan, dst: str, surplus: list[RemoteEntry], total: int, arguments: argparse.Namespace) -> int:
    if arguments.dry_run:
        plan.show("would copy")
        _show_removals("would remove", dst, surplus)
        return 0
    amount = plan.carry_out(arguments.threads)
    # Only when everything is there: what was moved in SRC is never in neither place.
    _remove(dst, surplus)
    if arguments.verbose:
        plan.show("copied")
        _show_removals("removed", dst, surplus)
    unchanged = total - len(plan.tasks)
    text = f"copied {amount}; {files(unchanged)} up to date"
    if arguments.delete:
        gone = [entry for entry in surplus if not entry.is_directory]
        text += f"; removed {files(len(gone))}, {human_size(sum(entry.length for entry in gone))}"
    show(text)
    return 0


def _entries(entries: list[RemoteEntry]) -> list[RemoteEntry]:
    return [entry for entry in entries if not _TEMPORARY.match(entry.relative.rpartition("/")[2])]


def _changed(
    src: str, dst: str, wanted: list[RemoteEntry], present: list[RemoteEntry], checksum: bool
) -> list[RemoteEntry]:
    from moxing.cli.file_compare import same_content, source_is_newer

    known = {entry.relative: entry for entry in present if not entry.is_directory}

    def differs(entry: RemoteEntry) -> bool:
        other = known.get(entry.relative)
        if other is None or other.length != entry.length:
            return True
        newer = None if checksum else source_is_newer(entry, other)
        if newer is not None:
            return newer
        return not same_content(join(src, entry.relative), entry, join(dst, entry.relative), other)

    found = [entry for entry in wanted if not entry.is_directory]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mox-compare") as pool:
        return [entry for entry, is_other in zip(found, pool.map(differs, found), strict=True) if is_other]


def _surplus(dst: str, wanted: list[RemoteEntry], present: list[RemoteEntry]) -> list[RemoteEntry]:
    """What is in the target and not in the source, what is in a directory before the directory."""
    names = {entry.relative for entry in wanted}
    # A link in the target may stand for a directory of the source, a key may be both a file and a directory.
    found = [entry for entry in reversed(present) if entry.relative not in names]
    for entry in found:
        if not {"", ".", ".."}.isdisjoint(entry.relative.split("/")):
            raise ValueError(
                f"dst_url={dst!r}: the key {entry.relative!r} in it could be taken for one outside of it, and is not "
                "removed; nothing was done."
            )
    return found


def _show_removals(word: str, dst: str, surplus: list[RemoteEntry]) -> None:
    for entry in surplus:
        path = join(dst, entry.relative)
        show(f"{word} {with_slash(path) if entry.is_directory else path}")


def _remove(dst: str, surplus: list[RemoteEntry]) -> None:
    gone = [join(dst, entry.relative) for entry in surplus if not entry.is_directory]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mox-remove") as pool:
        for _ in pool.map(remove_file, gone):
            pass
    for entry in surplus:
        if entry.is_directory:
            _remove_empty(join(dst, entry.relative))


def _remove_empty(url: str) -> None:
    """Removes a directory, unless somebody has put something into it meanwhile."""
    place = find_place(url, "url")
    if place is None:
        with contextlib.suppress(OSError):
            os.rmdir(url)
    elif not place.backend.has_real_directories:
        # All that there can be is the object that marks it.
        place.backend.remove_file(with_slash(place.path))
    elif not place.backend.entries(place.path):
        place.backend.remove_tree(place.path)
