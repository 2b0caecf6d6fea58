"""make_dirs, mk_dir, rename and remove for remote paths."""

from __future__ import annotations

import errno
import os

from moxing.framework.file.errors import is_a_directory, not_exists
from moxing.framework.file.urls import RemotePath, Url, find_remote, local_path


def make_dirs(remote: RemotePath) -> None:
    """Creates a directory and its parents. It may exist already."""
    found = remote.backend.stat(remote.path.rstrip("/"))
    if found is not None and not found.is_directory:
        raise FileExistsError(errno.EEXIST, "url: a file has that name", remote.url)
    if found is None:
        _make_directory(remote)


def mk_dir(remote: RemotePath) -> None:
    """Creates one directory. Its parent must exist."""
    parent = remote.path.rstrip("/").rpartition("/")[0]
    if parent and not remote.backend.is_directory(parent):
        raise not_exists("url", remote.url, "the parent directory does not exist, make_dirs creates it too")
    if remote.backend.stat(remote.path.rstrip("/")) is not None:
        raise FileExistsError(errno.EEXIST, "url: the name is taken already", remote.url)
    _make_directory(remote)


def _make_directory(remote: RemotePath) -> None:
    try:
        remote.backend.make_directory(remote.path)
    except FileNotFoundError as error:
        raise not_exists("url", remote.url, error.strerror or "cannot be made") from None


def remove(remote: RemotePath, recursive: bool) -> None:
    """Removes a file, or with `recursive` a directory. Without `recursive` a directory is left alone."""
    backend, path, url = remote
    name = path.rstrip("/")
    found = backend.stat(name)
    if found is None:
        raise not_exists("url", url)
    if not found.is_directory and name == path:
        backend.remove_file(path)
    if recursive and (found.is_directory or backend.is_directory(name)):
        backend.remove_tree(name)


def rename(src_url: Url, dst_url: Url) -> None:
    """Moves between backends: copies everything, then removes the source."""
    from moxing.framework.file.copying.copy import copy, copy_parallel
    from moxing.framework.file.operations import exists, is_directory, remove, stat

    src, dst = os.fsdecode(src_url), os.fsdecode(dst_url)
    if not exists(src):
        raise not_exists("src_url", src)
    is_tree = stat(src).is_directory
    source, target = find_remote(src, "src_url"), find_remote(dst, "dst_url")
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
