"""make_dirs, mk_dir, rename and remove on backends."""

from __future__ import annotations

import errno
import os

from moxing.framework.file.backends import Place, find_place
from moxing.framework.file.errors import is_a_directory, not_exists
from moxing.framework.file.paths import Url, local_path


def make_dirs(place: Place) -> None:
    """Creates a directory and those above it; it may be there already."""
    found = place.backend.stat(place.path.rstrip("/"))
    if found is not None and not found.is_directory:
        raise FileExistsError(errno.EEXIST, "url: a file has that name", place.url)
    if found is None:
        _make_directory(place)


def mk_dir(place: Place) -> None:
    """Creates one directory in one that exists."""
    parent = place.path.rstrip("/").rpartition("/")[0]
    if parent and not place.backend.is_directory(parent):
        raise not_exists("url", place.url, "the parent directory does not exist, make_dirs creates it too")
    if place.backend.stat(place.path.rstrip("/")) is not None:
        raise FileExistsError(errno.EEXIST, "url: the name is taken already", place.url)
    _make_directory(place)


def _make_directory(place: Place) -> None:
    try:
        place.backend.make_directory(place.path)
    except FileNotFoundError as error:
        raise not_exists("url", place.url, error.strerror or "cannot be made") from None


def remove(place: Place, recursive: bool) -> None:
    """Removes a file, or with `recursive` a directory; otherwise a directory stays as it is."""
    backend, path, url = place
    bare = path.rstrip("/")
    found = backend.stat(bare)
    if found is None:
        raise not_exists("url", url)
    if not found.is_directory and bare == path:
        backend.remove_file(path)
    if recursive and (found.is_directory or backend.is_directory(bare)):
        backend.remove_tree(bare)


def rename(src_url: Url, dst_url: Url) -> None:
    """Moves between backends: everything is at its new place before anything is removed from the old one."""
    from moxing.framework.file.operations import exists, is_directory, remove, stat
    from moxing.framework.file.transfer import copy, copy_parallel

    src, dst = os.fsdecode(src_url), os.fsdecode(dst_url)
    if not exists(src):
        raise not_exists("src_url", src)
    is_tree = stat(src).is_directory
    source, target = find_place(src, "src_url"), find_place(dst, "dst_url")
    if source is not None and target is not None and target.is_inside(source):
        if source.is_inside(target):
            return
        if is_tree:
            raise OSError(errno.EINVAL, f"dst_url: {src!r} cannot be moved into itself", dst)
    if target is None:
        _check_parent(dst)
    if is_tree:
        if is_directory(dst) and not _is_empty(dst):
            raise OSError(errno.ENOTEMPTY, "dst_url: the directory is not empty", dst)
        copy_parallel(src, dst)
    elif is_directory(dst):
        raise is_a_directory("dst_url", dst, "give the new name of the file")
    else:
        copy(src, dst)
    remove(src, recursive=is_tree)


def _check_parent(dst: str) -> None:
    parent = os.path.dirname(os.path.abspath(local_path(dst, "dst_url")))
    if not os.path.isdir(parent):
        raise not_exists("dst_url", dst, f"the directory {parent!r} does not exist, mox.file.make_dirs creates it")


def _is_empty(url: str) -> bool:
    from moxing.framework.file.listing import list_directory

    return not list_directory(url)
