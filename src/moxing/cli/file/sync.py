"""`moxing file sync`: copies what is new or has changed in a directory."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import moxing as mox
from moxing.cli.file.confirm import add_options, confirm
from moxing.cli.file.paths import EXIT_CODES, add_threads, find_item, own_tree, strip_slashes, tree, with_slash
from moxing.cli.file.rm import remove_file
from moxing.cli.output import file_count, human_size, show
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.errors import not_a_directory
from moxing.framework.file.operations import check_removable
from moxing.framework.file.urls import RemotePath, find_remote, join, resolve

if TYPE_CHECKING:
    from moxing.framework.file.copying.plan import CopyPlan

#: Temporary files of transfers.
_TEMPORARY = re.compile(r"^\.mox-[0-9a-f-]+\.(part|tmp)$")
_THREADS = 16
_EPILOG = f"""
SRC and DST are directories; slashes at the end make no difference. Afterwards DST has the content of SRC.
A file is copied if it is missing in DST, has another size there, or is older there. The clocks of both places
must agree. If the times are equal (a store keeps whole seconds), and always with --checksum, the contents
are compared, those of a store by their ETags.

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
    parser.add_argument("target", metavar="DST", help="directory, a path or url; created if it does not exist")
    parser.add_argument("--checksum", action="store_true", help="compare sizes and contents instead of times")
    parser.add_argument(
        "--delete",
        action="store_true",
        help="then remove from DST what SRC does not have",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print the name of every file")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be copied and removed")
    add_threads(parser)
    add_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from moxing.cli.file.copies import check_files_differ
    from moxing.framework.file.copying.plan import CopyPlan, check_not_inside, lies_in

    src, dst = find_item(arguments.source, "src_url"), strip_slashes(arguments.target, "dst_url")
    if not src.is_directory:
        raise not_a_directory("src_url", src.url, "`moxing file cp` copies files")
    if mox.file.exists(dst) and not mox.file.is_directory(dst):
        raise not_a_directory("dst_url", dst, "give the directory to copy into")
    target = resolve(dst, "dst_url")
    check_not_inside(src.location, target)
    if lies_in(src.location, target):
        raise ValueError(f"dst_url={dst!r}: expected a directory that src_url={src.url!r} does not lie in.")
    if arguments.delete and not isinstance(target, RemotePath):
        # The current directory (`.`) and a whole bucket may have the content of SRC; these may not.
        check_removable(os.path.realpath(target), "dst_url")
    wanted = _entries(tree(src.url))
    present = _entries(own_tree(dst)) if mox.file.is_directory(dst) else []
    plan = CopyPlan()
    changed = _changed(src.url, dst, wanted, present, arguments.checksum)
    # Only new directories: one whose files are all up to date would look empty and get a marker in a store.
    known = {entry.relative for entry in present if entry.is_directory}
    new = [entry for entry in wanted if entry.is_directory and entry.relative not in known]
    plan.add_tree(src.location, target, new + changed)
    check_files_differ(plan)
    surplus = _surplus(dst, wanted, present) if arguments.delete else []
    gone = [entry for entry in surplus if not entry.is_directory]
    confirm(arguments, len(gone), sum(entry.length for entry in gone), dst)
    return _run(plan, dst, surplus, sum(not entry.is_directory for entry in wanted), arguments)


def _run(plan: CopyPlan, dst: str, surplus: list[FileEntry], total: int, arguments: argparse.Namespace) -> int:
    from moxing.cli.file.copies import run_copies, show_plan

    if arguments.dry_run:
        show_plan(plan, "would copy")
        _show_removals("would remove", dst, surplus)
        return 0
    amount = run_copies(plan, arguments.threads)
    # After all copies: a file that was moved in SRC must not be missing in both places of DST meanwhile.
    _remove(dst, surplus)
    if arguments.verbose:
        show_plan(plan, "copied")
        _show_removals("removed", dst, surplus)
    unchanged = total - len(plan.tasks)
    text = f"copied {amount}; {file_count(unchanged)} up to date"
    if arguments.delete:
        gone = [entry for entry in surplus if not entry.is_directory]
        text += f"; removed {file_count(len(gone))}, {human_size(sum(entry.length for entry in gone))}"
    show(text)
    return 0


def _entries(entries: list[FileEntry]) -> list[FileEntry]:
    return [entry for entry in entries if not _TEMPORARY.match(entry.relative.rpartition("/")[2])]


def _changed(src: str, dst: str, wanted: list[FileEntry], present: list[FileEntry], checksum: bool) -> list[FileEntry]:
    from moxing.cli.file.compare import same_content, source_is_newer

    known = {entry.relative: entry for entry in present if not entry.is_directory}

    def differs(entry: FileEntry) -> bool:
        other = known.get(entry.relative)
        if other is None or other.length != entry.length:
            return True
        newer = None if checksum else source_is_newer(entry, other)
        if newer is not None:
            return newer
        return not same_content(join(src, entry.relative), entry, join(dst, entry.relative), other)

    found = [entry for entry in wanted if not entry.is_directory]
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="mox-compare") as pool:
        return [entry for entry, is_other in zip(found, pool.map(differs, found), strict=True) if is_other]


def _surplus(dst: str, wanted: list[FileEntry], present: list[FileEntry]) -> list[FileEntry]:
    """Returns what is in the target but not in the source, the content of a directory before the directory."""
    names = {entry.relative for entry in wanted}
    # Compare names only: a link in the target may stand for a directory, and a key may be a file and a directory.
    found = [entry for entry in reversed(present) if entry.relative not in names]
    for entry in found:
        if not {"", ".", ".."}.isdisjoint(entry.relative.split("/")):
            raise ValueError(
                f"dst_url={dst!r}: the key {entry.relative!r} in it may lead out of it and cannot be removed; "
                "nothing was done."
            )
    return found


def _show_removals(word: str, dst: str, surplus: list[FileEntry]) -> None:
    for entry in surplus:
        path = join(dst, entry.relative)
        show(f"{word} {with_slash(path) if entry.is_directory else path}")


def _remove(dst: str, surplus: list[FileEntry]) -> None:
    gone = [join(dst, entry.relative) for entry in surplus if not entry.is_directory]
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="mox-remove") as pool:
        for _ in pool.map(remove_file, gone):
            pass
    for entry in surplus:
        if entry.is_directory:
            _remove_empty(join(dst, entry.relative))


def _remove_empty(url: str) -> None:
    """Removes a directory if it is empty."""
    remote = find_remote(url, "url")
    if remote is None:
        with contextlib.suppress(OSError):
            os.rmdir(url)
    elif not remote.backend.has_real_directories:
        # Only its marker object can exist.
        remote.backend.remove_file(with_slash(remote.path))
    elif not remote.backend.entries(remote.path):
        remote.backend.remove_tree(remote.path)
