"""copy and copy_parallel where at least one of the two places is not local."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from moxing.framework.file.backends import Place, find_place
from moxing.framework.file.copying import CopyTask, copy_file
from moxing.framework.file.entries import RemoteEntry
from moxing.framework.file.errors import MoxFileNameDuplicateException, is_a_directory, not_exists
from moxing.framework.file.listing import TreeEntry, iterate_tree
from moxing.framework.file.operations import exists, is_directory
from moxing.framework.file.paths import Url, local_path
from moxing.framework.file.progress import transfer_bar
from moxing.framework.file.remote_file import missing_file
from moxing.framework.file.running import parts_at_once, run_tasks
from moxing.framework.file.target_tree import TargetTree

if TYPE_CHECKING:
    from moxing.framework.file.running import CopyOptions

#: What no local path can be made of, or only one that leads somewhere else.
_BAD_PARTS = ("", ".", "..")


def copy_one(src_url: Url, dst_url: Url, at_once: int) -> None:
    """`copy`: one file, to a name that is no directory."""
    src, dst = os.fsdecode(src_url), os.fsdecode(dst_url)
    source, target = find_place(src, "src_url"), find_place(dst, "dst_url")
    if source is None:
        path = local_path(src, "src_url")
        if not os.path.exists(path):
            raise not_exists("src_url", path)
        if os.path.isdir(path):
            raise is_a_directory("src_url", path, "mox.file.copy_parallel copies directories")
    elif source.path.endswith("/"):
        raise _not_a_file(source)
    if target is None:
        path = local_path(dst, "dst_url")
        if os.path.isdir(path) or path.endswith("/"):
            raise is_a_directory("dst_url", path, "give the name of the copy")
    elif target.path.endswith("/") or "/" not in target.path or target.backend.is_directory(target.path):
        raise is_a_directory("dst_url", target.url, "give the name of the copy")
    if src == dst or (source and target and source.is_inside(target) and target.is_inside(source)):
        if source is not None and source.backend.stat(source.path) is None:
            raise not_exists("src_url", src)
        return
    if target is None:
        directory = os.path.dirname(os.path.realpath(local_path(dst, "dst_url")))
        if not os.path.isdir(directory):
            # Not before it is known that there is something to put there.
            if source is not None and source.backend.stat(source.path) is None:
                raise not_exists("src_url", src)
            os.makedirs(directory, exist_ok=True)
    try:
        with transfer_bar(_size_for_bar(src, source)):
            copy_file(CopyTask(src, dst, at_once=at_once))
    except FileNotFoundError as error:
        # It may also be the bucket of the target that is not there.
        if source is not None and error.filename == src:
            raise _not_a_file(source) from None
        raise


def _size_for_bar(src: str, source: Place | None) -> int:
    """The size, if there is somebody to show a bar to: asking a store takes a request."""
    if not sys.stderr.isatty():
        return 0
    found = os.path.getsize(local_path(src, "src_url")) if source is None else source.backend.stat(source.path)
    return found if isinstance(found, int) else 0 if found is None else found.length


def _not_a_file(place: Place) -> OSError:
    if place.backend.is_directory(place.path):
        return is_a_directory("src_url", place.url, "mox.file.copy_parallel copies directories")
    return missing_file(place, "src_url")


def copy_tree(src_url: Url, dst_url: Url, names: list[str] | None, options: CopyOptions) -> None:
    """`copy_parallel`: what is in a directory, or the named parts of it, into another directory."""
    src, dst = os.fsdecode(src_url), os.fsdecode(dst_url)
    source, target = find_place(src, "src_url"), find_place(dst, "dst_url")
    if not is_directory(src):
        if not exists(src):
            raise not_exists("src_url", src)
        if names is not None:
            raise ValueError(f"file_list={names!r}: expected None, since src_url={src!r} is a file.")
        copy_one(src, dst, parts_at_once(options.threads))
        return
    entries = _local_entries(local_path(src, "src_url"), names) if source is None else _remote_entries(source, names)
    if names is not None:
        # A file may be named twice, also by its directory: two downloads to one name would get in each other's way.
        entries = iter({(entry.relative, entry.is_directory): entry for entry in entries}.values())
    if target is None:
        tasks = _plan_download(src, local_path(dst, "dst_url"), entries)
    else:
        tasks = _plan_upload(src, target, entries, source)
    run_tasks(tasks, options)


def _local_entries(path: str, names: list[str] | None) -> Iterator[RemoteEntry]:
    from moxing.framework.file.transfer import select_entries

    found: Iterable[TreeEntry] = iterate_tree(path) if names is None else select_entries(path, names)
    for entry in found:
        if entry.relative == os.curdir:
            continue
        own = os.path.join(path, entry.relative)
        if entry.is_loop:
            raise OSError(errno.ELOOP, "src_url contains a link to a directory above it", own)
        if not entry.is_directory and not os.path.exists(own):
            raise not_exists("src_url", own, "a link to nothing")
        yield RemoteEntry(entry.relative, entry.is_directory, 0 if entry.is_directory else os.path.getsize(own))


def _remote_entries(source: Place, names: list[str] | None) -> Iterator[RemoteEntry]:
    if names is None:
        yield from source.backend.tree(source.path)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(16, thread_name_prefix="mox-find") as pool:
        for entries in list(pool.map(lambda name: _find_entry(source, name), names)):
            yield from entries


def _find_entry(source: Place, name: str) -> list[RemoteEntry]:
    if name == os.curdir:
        return list(source.backend.tree(source.path))
    place = source.child(name)
    found = place.backend.stat(place.path)
    if found is None:
        raise not_exists("file_list", place.url)
    if not found.is_directory:
        # The version is not known, only the size: the request for the content tells it.
        return [RemoteEntry(name, False, found.length, found.mtime_nsec, "")]
    below = [entry._replace(relative=f"{name}/{entry.relative}") for entry in place.backend.tree(place.path)]
    return [RemoteEntry(name, True), *below]


def _plan_download(src: str, dst: str, entries: Iterable[RemoteEntry]) -> list[CopyTask]:
    """Everything is checked before the first file is written: names, links, files and directories of one name."""
    tree = TargetTree(dst)
    tasks = []
    for entry in entries:
        relative = check_name(src, entry.relative)
        if entry.is_directory:
            tree.add_directory(relative)
        else:
            target = tree.add_file(relative)
            tasks.append(CopyTask(_join(src, entry.relative), target, entry.length, entry.version))
    tree.make_directories()
    return tasks


def check_name(src: str, relative: str) -> str:
    """A key below `src` that is to be a local path, if it can be one.

    Example:
      >>> check_name('s3://bucket', 'a/b')
      'a/b'
    """
    if "\0" in relative or any(part in _BAD_PARTS for part in relative.split("/")):
        raise ValueError(
            f"src_url={src!r}: the key {relative!r} in it cannot be a path below dst_url; nothing was copied. "
            "Name the files to copy in file_list."
        )
    return relative


def check_key(src: str, relative: str) -> None:
    """Refuses a key below `src` that no url can name, since there several slashes are one.

    Example:
      >>> check_key('s3://bucket', 'a/b')
    """
    if relative and "" in relative.split("/"):
        raise ValueError(
            f"src_url={src!r}: the key {relative!r} in it has an empty part, which no url can name; nothing was "
            "copied. Name the files to copy in file_list."
        )


def _plan_upload(src: str, target: Place, entries: Iterable[RemoteEntry], source: Place | None) -> list[CopyTask]:
    backend, path, url = target
    found = backend.stat(path.rstrip("/"))
    if found is not None and not found.is_directory:
        raise MoxFileNameDuplicateException(errno.EEXIST, "dst_url: a file has the name of a directory", url)
    if source is not None:
        _check_not_inside(source, target)
    planned = list(entries)
    if source is not None:
        for entry in planned:
            check_key(src, entry.relative)
    parents = {os.path.dirname(entry.relative) for entry in planned}
    if not backend.has_real_directories:
        # Directories with something in them are there by that alone.
        empty = [entry for entry in planned if entry.is_directory and entry.relative not in parents]
    else:
        empty = [entry for entry in planned if entry.is_directory]
    if found is None and not planned or backend.has_real_directories:
        backend.make_directory(path)
    for entry in empty:
        backend.make_directory(target.child(entry.relative).path)
    return [
        CopyTask(_join(src, entry.relative), target.child(entry.relative).url, entry.length, entry.version)
        for entry in planned
        if not entry.is_directory
    ]


def _check_not_inside(source: Place, target: Place) -> None:
    if target.is_inside(source):
        raise ValueError(
            f"dst_url={target.url!r}: expected a directory outside src_url={source.url!r}, "
            "a directory cannot be copied into itself."
        )


def _join(directory: str, relative: str) -> str:
    return f"{directory}{relative}" if directory.endswith("/") else f"{directory}/{relative}"
